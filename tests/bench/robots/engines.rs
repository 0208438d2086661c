//! The engines side by side, each behind the same three things: parse, decide, and the way there.
//!
//! Never times anything, and does no work for an engine that its own callers would not do.

use robotgate::robots::RobotsTxt;

/// An engine of robots.txt, as its users use it.
pub trait Engine: 'static {
    /// Its column's head.
    const NAME: &'static str;
    /// What it keeps of a file.
    type Parsed;
    /// What it can pick before the path is known.
    type Picked<'a>;

    /// `None` where it refuses the file.
    fn parse(file: &[u8], agent: &str) -> Option<Self::Parsed>;
    fn pick<'a>(parsed: &'a Self::Parsed, agent: &str) -> Self::Picked<'a>;
    fn allows(picked: &Self::Picked<'_>, path: &str) -> bool;
}

/// Keeps the rules for every agent; the agent is looked up in the parsed file.
pub struct Robotgate;

/// Keeps the rules for the agent that it parses for, and rewrites escapes of each path.
pub struct Robotxt;

/// Keeps the rules for the agent that it parses for, and takes URLs as well as paths.
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
