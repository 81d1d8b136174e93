//! The query of a request to one of our own endpoints: `name=value&…`, no value of which needs escapes.

/// The value of a key.
pub(crate) fn value<'a>(query: &'a str, key: &str) -> Option<&'a str> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// The same where it is a number.
pub(crate) fn number<N: std::str::FromStr>(query: &str, key: &str) -> Result<Option<N>, N::Err> {
    value(query, key).map(str::parse).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_as_they_are_written() {
        let query = "since=7&&span=day&since=9&limit";
        assert_eq!(
            (value(query, "since"), value(query, "span"), value(query, "limit")),
            (Some("7"), Some("day"), None)
        );
        assert_eq!(number::<u64>(query, "since"), Ok(Some(7)));
        assert_eq!(number::<u64>(query, "before"), Ok(None));
        assert!(number::<u64>(query, "span").is_err());
    }
}
