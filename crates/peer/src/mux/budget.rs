//! Counting bytes against a limit.

/// A number of bytes that may not exceed a limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    used_bytes: usize,
    bytes_max: usize,
}

impl Budget {
    pub(super) const fn new(bytes_max: usize) -> Self {
        Self { used_bytes: 0, bytes_max }
    }

    /// Whether `bytes` fit.
    pub(super) const fn has_room_for(&self, bytes: usize) -> bool {
        bytes <= self.bytes_max - self.used_bytes
    }

    /// Takes `bytes` if they fit.
    #[must_use]
    pub(super) const fn take(&mut self, bytes: usize) -> bool {
        if !self.has_room_for(bytes) {
            return false;
        }
        self.used_bytes += bytes;
        true
    }

    /// Gives back what was taken.
    pub(super) fn give_back(&mut self, bytes: usize) {
        assert!(bytes <= self.used_bytes, "{bytes} bytes are given back, {} were taken", self.used_bytes);
        self.used_bytes -= bytes;
    }

    #[cfg(test)]
    pub(super) const fn used(&self) -> usize {
        self.used_bytes
    }
}
