use std::cell::RefCell;

use super::*;

thread_local! {
    static VARIABLES: RefCell<BTreeMap<String, String>> = const { RefCell::new(BTreeMap::new()) };
}

fn settings(variables: &[(&str, &str)], options: &[(&str, &str)]) -> S3Settings {
    let [variables, options] = [variables, options].map(|pairs| {
        let pairs = pairs.iter();
        let pairs = pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        pairs.collect::<OptionValues>()
    });
    VARIABLES.set(variables);
    let variable = |name: &str| VARIABLES.with_borrow(|known| known.get(name).cloned());
    S3Settings::new(variable, &options)
}

fn site(variables: &[(&str, &str)]) -> Result<Site> {
    settings(variables, &[]).site()
}

const KEYS: [(&str, &str); 2] = [(KEY_ID, "AK"), (SECRET, "hush")];

#[test]
fn variables_come_before_files_and_buckets_stand_where_the_store_wants_them() {
    let home = tempfile::tempdir().unwrap();
    let aws = home.path().join(".aws");
    std::fs::create_dir(&aws).unwrap();
    let text = "[default]\naws_access_key_id = AD\naws_secret_access_key=quiet # not a comment\n";
    std::fs::write(
        aws.join("credentials"),
        text.replace(" # not a comment", ""),
    )
    .unwrap();
    let text = "[default]\nregion=eu-west-1\n[profile own]\nregion = eu-west-2\nendpoint_url = http://h:1/\n";
    std::fs::write(aws.join("config"), text).unwrap();
    let home = (HOME, home.path().to_str().unwrap());
    let key_of = |site: &Site| match &site.credentials {
        CredentialSource::Fixed(credential) => credential.key_id.clone(),
        other => panic!("{other:?}"),
    };
    let found = site(&[home]).unwrap();
    assert_eq!(key_of(&found), "AD");
    assert_eq!(found.root_of("b"), "https://b.s3.eu-west-1.amazonaws.com");
    assert_eq!(
        found.root_of("a.b"),
        "https://s3.eu-west-1.amazonaws.com/a.b"
    );
    let found = site(&[home, KEYS[0], KEYS[1], ("AWS_PROFILE", "own")]).unwrap();
    assert_eq!((&*key_of(&found), &*found.region), ("AK", "eu-west-2"));
    assert_eq!(found.root_of("b"), "http://h:1/b");
    let found = site(&[home, ("AWS_ENDPOINT_URL", "http://g"), ("AWS_REGION", "r")]).unwrap();
    assert_eq!(
        (found.root_of("b"), &*found.region),
        ("http://g/b".to_owned(), "r")
    );
}

#[test]
fn options_come_before_variables() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".aws")).unwrap();
    let text = "[own]\naws_access_key_id = AO\naws_secret_access_key = quiet\nregion = eu-west-2\n";
    std::fs::write(home.path().join(".aws/credentials"), text).unwrap();
    let home = home.path().to_str().unwrap();
    let variables = [
        KEYS[0],
        KEYS[1],
        (HOME, home),
        ("AWS_ENDPOINT_URL", "http://g"),
    ];
    let given = [
        ("endpoint", "http://h:1"),
        ("profile", "own"),
        ("addressing_style", "virtual"),
    ];
    let found = settings(&variables, &given).site().unwrap();
    assert_eq!(found.root_of("b"), "http://b.h:1");
    assert_eq!(found.region, "eu-west-2");
    assert!(matches!(&found.credentials, CredentialSource::Fixed(found) if found.key_id == "AO"));
}

/// Where credentials come from, in words.
fn source_of(variables: &[(&str, &str)]) -> String {
    match site(variables).map(|site| site.credentials) {
        Ok(CredentialSource::Fixed(_)) => "fixed".to_owned(),
        Ok(CredentialSource::Program(command)) => command,
        Ok(CredentialSource::Service(Service::Identity(found))) => {
            format!(
                "{} {} {} {}",
                found.token_file, found.role, found.session, found.endpoint
            )
        }
        Ok(CredentialSource::Service(Service::Container(found))) => match found.token {
            Some(ContainerToken::InFile(file)) => format!("{} {file}", found.address),
            Some(ContainerToken::Given(_)) => format!("{} given", found.address),
            None => found.address,
        },
        Ok(CredentialSource::Machine(found)) => format!("machine {found:?}"),
        Err(_) => "none".to_owned(),
    }
}

#[test]
fn credentials_come_from_the_first_that_has_them() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".aws")).unwrap();
    let text = "[default]\ncredential_process = /bin/ask --for 'me'\n[empty]\n";
    std::fs::write(home.path().join(".aws/credentials"), text).unwrap();
    let home = (HOME, home.path().to_str().unwrap());
    let token = (IDENTITY_TOKEN, "/token");
    let container = ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/of-me");
    let nobody = ("AWS_PROFILE", "empty");
    let off = (NO_METADATA, "True");
    let role = (ROLE, "a-role");
    let of_token = "/token a-role gristmill https://sts.us-east-1.amazonaws.com";
    assert_eq!(
        source_of(&[home, token, role, container, KEYS[0], KEYS[1]]),
        "fixed"
    );
    assert_eq!(source_of(&[home, token, role, container]), of_token);
    assert_eq!(source_of(&[home, token, container]), "none", "no role");
    let own = [
        home,
        token,
        role,
        (SESSION, "me"),
        (ENDPOINT[0], "http://s3"),
        (ENDPOINT[1], "http://all"),
    ];
    assert_eq!(source_of(&own), "/token a-role me http://all");
    let own = [
        home,
        token,
        role,
        (STS[0], "http://sts"),
        (STS[1], "http://all"),
    ];
    assert_eq!(source_of(&own), "/token a-role gristmill http://sts");
    assert_eq!(source_of(&[home, container]), "/bin/ask --for 'me'");
    let of_container = "http://169.254.170.2/of-me";
    assert_eq!(source_of(&[home, nobody, container, off]), of_container);
    let (in_file, given) = ((CONTAINER_TOKEN[0], "/file"), (CONTAINER_TOKEN[1], "hush"));
    let full = (CONTAINER[1], "http://localhost/a");
    assert_eq!(
        source_of(&[home, nobody, full, given]),
        "http://localhost/a given"
    );
    assert_eq!(
        source_of(&[home, nobody, full, given, in_file]),
        "http://localhost/a /file"
    );
    assert_eq!(
        source_of(&[home, nobody, (METADATA, "http://m")]),
        "machine Some(\"http://m\")"
    );
    assert_eq!(source_of(&[home, nobody]), "machine None");
    assert_eq!(source_of(&[home, nobody, off]), "none");
}

#[test]
fn certificates_are_those_of_the_variable_or_of_the_profile() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".aws")).unwrap();
    let text = "[default]\nca_bundle = /of/profile\n";
    std::fs::write(home.path().join(".aws/config"), text).unwrap();
    let home = (HOME, home.path().to_str().unwrap());
    let bundle = |variables: &[(&str, &str)]| {
        let variables = [&KEYS, variables].concat();
        site(&variables)
            .unwrap()
            .bundle
            .map(|found| (found.named_by, found.file))
    };
    assert_eq!(bundle(&[]), None);
    assert_eq!(bundle(&[home]), Some(("ca_bundle", "/of/profile".into())));
    assert_eq!(
        bundle(&[home, (BUNDLE, "/own")]),
        Some((BUNDLE, "/own".into()))
    );
}

#[test]
fn what_makes_no_sense_is_said_without_secrets() {
    let with = |name, value| site(&[KEYS[0], KEYS[1], (name, value)]);
    for (made, says) in [
        (site(&[KEYS[0]]), "no credentials"),
        (site(&[KEYS[0], (SECRET, "hu sh")]), "spaces"),
        (with(TOKEN, "hu\nsh"), "spaces"),
        (with("AWS_ENDPOINT_URL", "h:1"), "endpoint"),
        (with("AWS_ENDPOINT_URL", "http://me:hush@h"), "endpoint"),
        (with("AWS_PROFILE", "gone"), "no profile \"gone\""),
        (with("AWS_REGION", "a b"), "AWS_REGION"),
    ] {
        let error = made.unwrap_err().to_string();
        assert!(error.contains(says) && !error.contains("hu"), "{error}");
    }
}
