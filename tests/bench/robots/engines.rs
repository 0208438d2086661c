//! The engines, each with the same interface: parse, pick and decide.
//!
//! This module measures nothing, and does only the work that users of an engine have to do too.

use robotgate::robots::RobotsTxt;

/// A robots.txt engine, with the calls that its users make.
pub trait Engine: 'static {
    /// The header of the engine's column.
    const NAME: &'static str;
    type Parsed;
    /// What the engine can select before the path is known.
    type Picked<'a>;

    /// Parses a file; `None` if the engine rejects it.
    fn parse(file: &[u8], agent: &str) -> Option<Self::Parsed>;
    fn pick<'a>(parsed: &'a Self::Parsed, agent: &str) -> Self::Picked<'a>;
    fn allows(picked: &Self::Picked<'_>, path: &str) -> bool;
}

/// Keeps the rules for every agent, and looks the agent up in the parsed file.
pub struct Robotgate;

/// Keeps only the rules for the agent that it parses for, and normalizes the escapes of each path.
pub struct Robotxt;

/// Keeps only the rules for the agent that it parses for, and accepts URLs as well as paths.
pub struct TextingRobots;

// === impl Robotgate ===

impl Engine for Robotgate {
    const NAME: &'static str = "robotgate";
    type Parsed = RobotsTxt;
    type Picked<'a> = robotgate::robots::Agent<'a>;

    fn parse(file: &[u8], _agent: &str) -> Option<RobotsTxt> {
        Some(RobotsTxt::parse(file))
    }

    fn pick<'a>(parsed: &'a RobotsTxt, agent: &str) -> robotgate::robots::Agent<'a> {
        parsed.agent(agent)
    }

    fn allows(picked: &robotgate::robots::Agent<'_>, path: &str) -> bool {
        picked.decide(path.as_bytes()).allowed
    }
}

// === impl Robotxt ===

impl Engine for Robotxt {
    const NAME: &'static str = "robotxt";
    type Parsed = robotxt::Robots;
    type Picked<'a> = &'a robotxt::Robots;

    fn parse(file: &[u8], agent: &str) -> Option<robotxt::Robots> {
        Some(robotxt::Robots::parse(file, agent))
    }

    fn pick<'a>(parsed: &'a robotxt::Robots, _agent: &str) -> &'a robotxt::Robots {
        parsed
    }

    fn allows(picked: &&robotxt::Robots, path: &str) -> bool {
        picked.is_allowed(path)
    }
}

// === impl TextingRobots ===

impl Engine for TextingRobots {
    const NAME: &'static str = "texting_robots";
    type Parsed = texting_robots::Robot;
    type Picked<'a> = &'a texting_robots::Robot;

    fn parse(file: &[u8], agent: &str) -> Option<texting_robots::Robot> {
        texting_robots::Robot::new(agent, file).ok()
    }

    fn pick<'a>(parsed: &'a texting_robots::Robot, _agent: &str) -> &'a texting_robots::Robot {
        parsed
    }

    fn allows(picked: &&texting_robots::Robot, path: &str) -> bool {
        picked.allowed(path)
    }
}
