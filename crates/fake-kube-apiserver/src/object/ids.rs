//! Uids and generated names.

use std::fmt::Write as _;

/// Makes uids and generated names. They are not random: the same requests get the same ones.
#[derive(Debug, Default)]
pub(crate) struct Ids(u64);

// === impl Ids ===

impl Ids {
    /// The next number of splitmix64, which does not repeat one.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        it ^ (it >> 31)
    }

    /// A uid in the form of a version 4 UUID.
    pub(crate) fn uid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | (low >> 50),
            low & 0xffff_ffff_ffff,
        )
    }

    /// The prefix and five characters of Kubernetes' own alphabet.
    pub(crate) fn name(&mut self, prefix: &str) -> String {
        const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
        let (mut name, mut bits) = (prefix.to_owned(), self.next());
        for _ in 0..5 {
            let index = usize::try_from(bits % 27).unwrap_or_default();
            // A write to a string cannot fail.
            let _ = name.write_char(char::from(ALPHABET[index]));
            bits /= 27;
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_form_of_real_server_ids() {
        let mut ids = Ids::default();
        let (first, second) = (ids.uid(), ids.uid());
        assert_ne!(first, second);
        let lengths: Vec<_> = first.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        let name = ids.name("a-");
        assert!(name.starts_with("a-") && name.len() == 7, "{name}");
    }
}
