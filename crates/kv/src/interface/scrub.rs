//! Scrubbing, for an operator.

use crate::engine::Kv;
use crate::scrub::ScrubReport;
use ombak_types::Error;

impl Kv {
    /// How far scrubbing has come, and what it has found.
    pub fn scrub_report(&self) -> ScrubReport {
        self.engine.scrubbing.report()
    }

    /// Begins a round over everything, at the highest rate of the configuration. Fails if the
    /// configuration has switched scrubbing off.
    pub fn start_scrub(&self) -> Result<(), Error> {
        self.check_scrub()?;
        self.engine.scrubbing.start_round();
        Ok(())
    }

    /// Pauses scrubbing until the node stops, or lets it go on. Fails if the configuration has
    /// switched it off.
    pub fn set_scrub_paused(&self, is_paused: bool) -> Result<(), Error> {
        self.check_scrub()?;
        self.engine.scrubbing.set_paused(is_paused);
        Ok(())
    }

    fn check_scrub(&self) -> Result<(), Error> {
        if self.engine.scrubbing.is_enabled() {
            return Ok(());
        }
        Err(Error::Unsupported("scrubbing is off: set scrub.enabled = on and start the node again".into()))
    }
}
