//! Prefixes order as keys do, of every shape.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

#[test]
fn short_keys_are_padded_with_zeros() {
    let key = b"abcdefgh";
    for len in 0..=key.len() {
        let mut want = [0; PREFIX_BYTES];
        want[..len].copy_from_slice(&key[..len]);
        assert_eq!(padded(&key[..len]).to_be_bytes(), want);
    }
}

/// Keys of few different bytes, so that prefixes tie and keys end inside each other.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0_u8), Just(b'a'), Just(0xFF)];
    let few = vec(byte, 0..20);
    prop_oneof![few, vec(any::<u8>(), 0..20)]
}

fn agree(shape: impl Shape, a: &[u8], b: &[u8], want: Ordering) {
    let both = |record| (shape.prefix(record), shape.second_prefix(record));
    let prefixes = both(a).cmp(&both(b));
    assert_eq!(shape.compare(a, b), want);
    assert!(prefixes == want || prefixes.is_eq());
}

proptest! {
    #[test]
    fn the_prefix_of_a_line_orders_as_its_key(a in key(), b in key(), descending in any::<bool>()) {
        let line = |key: &[u8]| -> Vec<u8> {
            let kept = key.iter().copied().filter(|byte| *byte != b'\n');
            kept.chain([b'\n']).collect()
        };
        let (a, b) = (line(&a), line(&b));
        let want = a[..a.len() - 1].cmp(&b[..b.len() - 1]);
        let shape = LineShape { descending };
        agree(shape, &a, &b, if descending { want.reverse() } else { want });
        prop_assert_eq!(shape.length(&[&a[..], &b].concat()), Some(a.len()));
        let begun = a.len() - 1;
        prop_assert_eq!(shape.rest_length(begun, &a[begun..]), Some(1));
        prop_assert_eq!(shape.rest_length(begun, &[]), None);
        prop_assert_eq!(shape.length(&a[..a.len() - 1]), None);
    }

    #[test]
    fn the_prefix_of_a_pair_orders_as_its_key(a in key(), b in key(), value in vec(any::<u8>(), 0..20)) {
        let pair = |key: &[u8]| {
            let mut record = Vec::new();
            PairShape.write(key, &value, &mut record);
            record
        };
        let (first, second) = (pair(&a), pair(&b));
        agree(PairShape, &first, &second, a.cmp(&b));
        prop_assert_eq!((PairShape.key(&first), PairShape.value(&first)), (&a[..], &value[..]));
        let both = [&first[..], &second].concat();
        prop_assert_eq!(PairShape.length(&both), Some(first.len()));
        for begun in 0..first.len() {
            prop_assert_eq!(PairShape.rest_of(&first[..begun], &both[begun..]), Some(first.len() - begun));
            prop_assert_eq!(PairShape.rest_of(&first[..begun], &first[begun..first.len() - 1]), None);
        }
    }

    #[test]
    fn the_prefix_of_a_fixed_record_orders_as_its_key(
        a in key(),
        b in key(),
        key_bytes in 0_usize..12,
        rest in 0_usize..4,
        descending in any::<bool>(),
    ) {
        let record_bytes = (key_bytes + rest).max(1);
        let record = |mut key: Vec<u8>| {
            key.resize(record_bytes, 7);
            key
        };
        let (a, b) = (record(a), record(b));
        let want = a[..key_bytes].cmp(&b[..key_bytes]);
        let shape = Fixed { record_bytes, key_bytes, descending };
        agree(shape, &a, &b, if descending { want.reverse() } else { want });
        prop_assert_eq!(shape.length(&a), Some(record_bytes));
        prop_assert_eq!(shape.length(&a[1..]), None);
    }
}
