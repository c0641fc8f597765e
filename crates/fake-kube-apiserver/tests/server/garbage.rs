//! The server answers every request, however odd.

use ::http::{HeaderValue, Method, Request, Uri};
use fake_kube_apiserver::ApiServer;
use proptest::prelude::*;
use tower::ServiceExt as _;

use crate::support::{LEASES, MAPS};

/// Parts that the server understands, nearly understands, or does not understand.
fn path() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "api",
        "apis",
        "v1",
        "namespaces",
        "default",
        "configmaps",
        "leases",
        "coordination.k8s.io",
        "watch",
        "proxy",
        "status",
        "x",
        "",
        ".",
        "..",
        "%2F",
        "%ff",
        "%zz",
        "tokenreviews",
        "authentication.k8s.io",
    ]);
    let free = prop::collection::vec(piece, 0..9).prop_map(|it| format!("/{}", it.join("/")));
    prop_oneof![free, Just(format!("{MAPS}/x")), Just(MAPS.to_owned()), Just(format!("{LEASES}/x"))]
}

fn query() -> impl Strategy<Value = String> {
    let pair = prop::sample::select(vec![
        "watch",
        "watch=1",
        "resourceVersion=1",
        "resourceVersion=-1",
        "resourceVersion=99999999999999999999",
        "fieldSelector=metadata.name%3Dx",
        "fieldSelector=%3D%3D",
        "labelSelector=a+in+((",
        "labelSelector=!,a!=",
        "dryRun=All",
        "dryRun=",
        "timeoutSeconds=1",
        "timeout=1ms",
        "timeout=999999999h",
        "sendInitialEvents=true",
        "%ff=%ff",
        ";",
        "=",
        "fieldManager=x",
        "resourceVersionMatch=NotOlderThan",
        "allowWatchBookmarks=1",
        "limit=1",
        "continue=1.default/x",
        "fieldValidation=Strict",
        "labelSelector=a>1,b+in+(",
        "fieldSelector=metadata.name%3D\\",
    ]);
    prop::collection::vec(pair, 0..5).prop_map(|it| it.join("&"))
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let near = prop::sample::select(vec![
        r#"{"metadata":{"name":"x"}}"#,
        r#"{"metadata":null,"spec":null}"#,
        r#"{"metadata":{"name":"x","resourceVersion":"1"}}"#,
        r#"{"metadata":[]}"#,
        r#"{"metadata":{"labels":{"a":1}}}"#,
        r#"{"spec":{"leaseDurationSeconds":1e99}}"#,
        "[]",
        "7",
        "",
        r#"{"apiVersion":7,"kind":[]}"#,
        r#"{"preconditions":7,"dryRun":["x",1]}"#,
        r#"{"spec":{"token":"t"}}"#,
        r#"{"metadata":{"name":"x","annotations":{}},"status":[]}"#,
        r#"{"metadata":{"generateName":"é"}}"#,
        r#"[{"op":"add","path":"/metadata/labels","value":{"a":"b"}},{"op":"copy","from":"","path":"/x"}]"#,
        r#"[{"op":"remove","path":"/metadata"}]"#,
        r#"{"metadata":{"name":"x","finalizers":["a/b"]},"spec":{"renewTime":"2026-01-02T03:04:0é.678901Z"}}"#,
    ]);
    prop_oneof![
        near.prop_map(|it| it.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..64),
        (1..4000_usize).prop_map(|it| [b"{\"a\":".repeat(it), b"1".to_vec(), b"}".repeat(it)].concat()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_requests_never_panic_the_server(
        requests in prop::collection::vec((0..7_usize, path(), query(), body(), 0..6_usize), 1..20),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let server = ApiServer::new();
            let mut writes = 0;
            for (method, path, query, body, content_type) in requests {
                let method = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "get"][method];
                let content_type = ["application/json", "application/merge-patch+json", "application/apply-patch+yaml", "", "\u{e9}", "application/json-patch+json"]
                    [content_type];
                let Ok(uri) = format!("{path}?{query}").parse::<Uri>() else { continue };
                writes += usize::from(!matches!(method, "GET" | "HEAD"));
                let request = Request::builder()
                    .method(Method::from_bytes(method.as_bytes()).unwrap())
                    .uri(uri)
                    .header("authorization", HeaderValue::from_bytes(b"Bearer \xff").unwrap())
                    .header("content-type", HeaderValue::from_bytes(content_type.as_bytes()).unwrap())
                    .body(http_body_util::Full::new(bytes::Bytes::from(body)))
                    .unwrap();
                let answer = server.service().oneshot(request).await.expect("an answer");
                assert!((200..600).contains(&answer.status().as_u16()));
                assert_eq!(server.write_log().len(), writes);
            }
            assert!(server.write_log().iter().all(|it| it.completed.is_some() && it.status >= 200));
        });
    }
}
