//! The last step of a decision on a bot that does text and data mining: what the site's `tdmrep.json` says.

use std::time::Duration;

use super::{AT_ONCE, BUDGET, Decision, Reason, Scope, TdmrepState, Verdict};
use crate::{
    copy::{Reservation, Sha256, TdmRep, TooLong},
    origin::Origin,
    usage::{UseSource, Vocabulary},
};

/// A decision that still depends on the site's `tdmrep.json`.
#[derive(Debug, Clone)]
pub struct NeedsTdmrep(pub(super) Decision);

/// What is known of a site's `tdmrep.json`.
#[derive(Clone, Copy, Debug)]
pub enum Tdmrep<'t> {
    Found(&'t TdmRep, Sha256),
    /// What the file said, according to the audit log, for a decision without the file itself.
    Answer(TdmrepAnswer),
    /// The site has no file, or robotgate could never fetch it.
    None,
    /// The first fetch has not ended. If the file could refuse the request, the request is refused for now.
    Pending,
    /// The decision is made without the file, as when `explain` decides by a local robots.txt.
    NotAsked,
}

/// What a site's `tdmrep.json` says about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TdmrepAnswer {
    /// `None` if no entry matches the path, or if the search takes too long and the configuration does not let the file
    /// refuse requests.
    pub reservation: Option<Reservation>,
    pub sha256: Sha256,
}

// === impl NeedsTdmrep ===

impl NeedsTdmrep {
    /// Returns the origin whose `tdmrep.json` decides.
    pub fn origin(&self) -> &Origin {
        &self.0.target().origin
    }

    pub fn add_wait(&mut self, waited: Duration) {
        if let Some(lookup) = &mut self.0.lookup {
            lookup.waited += waited;
        }
    }

    /// Decides with what is known of the site's `tdmrep.json`. If that takes more work than [`BUDGET`], decides without
    /// the file, or denies the request if the configuration lets the file refuse requests.
    pub fn complete(self, tdmrep: Tdmrep<'_>) -> Decision {
        match tdmrep {
            Tdmrep::Found(file, sha256) => match self.reservation(file, BUDGET) {
                Ok(reservation) => self.settle(TdmrepState::Found, Some(TdmrepAnswer { reservation, sha256 })),
                Err(TooLong) => self.too_complex(sha256),
            },
            Tdmrep::Answer(answer) => self.settle(TdmrepState::Found, Some(answer)),
            Tdmrep::None => self.settle(TdmrepState::None, None),
            Tdmrep::Pending => self.settle(TdmrepState::Pending, None),
            Tdmrep::NotAsked => self.settle(TdmrepState::NotAsked, None),
        }
    }

    /// Decides with `file`, but only if that takes a few milliseconds at most.
    ///
    /// # Errors
    /// Fails if it would take longer, and returns the decision unchanged.
    pub fn complete_at_once(self, file: &TdmRep, sha256: Sha256) -> Result<Decision, Box<Self>> {
        match self.reservation(file, AT_ONCE) {
            Ok(reservation) => Ok(self.settle(TdmrepState::Found, Some(TdmrepAnswer { reservation, sha256 }))),
            Err(TooLong) => Err(Box::new(self)),
        }
    }

    fn too_complex(self, sha256: Sha256) -> Decision {
        if !self.0.question.terms.usage.can_refuse(&[Vocabulary::Tdmrep]) {
            let reservation = None;
            return self.settle(TdmrepState::Found, Some(TdmrepAnswer { reservation, sha256 }));
        }
        let mut decision = self.0;
        if let Some(report) = &mut decision.usage {
            (report.tdmrep, report.tdmrep_sha256) = (Some(TdmrepState::Found), Some(sha256));
        }
        decision.refuse(Verdict::Deny, Reason::TooComplex);
        decision
    }

    fn settle(self, state: TdmrepState, answer: Option<TdmrepAnswer>) -> Decision {
        let mut decision = self.0;
        if let Some(report) = &mut decision.usage {
            report.tdmrep = Some(state);
            report.tdmrep_sha256 = answer.map(|answer| answer.sha256);
            if let Some(Reservation { reserved, entry }) = answer.and_then(|answer| answer.reservation) {
                let (vocabulary, policy) = (Vocabulary::Tdmrep, &decision.question.terms.usage);
                for label in vocabulary.labels() {
                    let source = UseSource::Entry(entry);
                    let statements = policy.statements(report.purposes, vocabulary, label, !reserved, source);
                    statements.for_each(|statement| report.add(statement));
                }
            }
        }
        decision.settle_usage();
        decision
    }

    /// Returns what the file says about the path. If the file reserves one reading of the path (forbids text and data
    /// mining for it), that reading decides.
    fn reservation(&self, file: &TdmRep, mut budget: usize) -> Result<Option<Reservation>, TooLong> {
        if let Scope::Tunnel { .. } = self.0.question.scope {
            return Ok(file.find_any());
        }
        let readings = self.0.question.readings();
        let mut found = None;
        for (number, reading) in readings.all().enumerate() {
            let text = readings.text(reading);
            budget = budget.checked_sub(text.len()).ok_or(TooLong)?;
            let reservation = file.find(&text, &mut budget)?;
            if reservation.is_some_and(|reservation| reservation.reserved) {
                return Ok(reservation);
            }
            // The file allows mining only if it has an entry that allows it for each reading of the path.
            found = match number {
                0 => reservation,
                _ => found.filter(|_| reservation.is_some()),
            };
        }
        Ok(found)
    }
}
