//! The server on a real socket: requests under way are answered at the end, silent clients are cut off.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use retoma_server::{Limits, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

fn limits() -> Limits {
    Limits { connections: 2, head_for: Duration::from_millis(200), drain_for: Duration::from_secs(10) }
}

#[tokio::test]
async fn a_request_under_way_is_answered_before_the_server_ends() {
    let (entered, go_on) = (std::sync::Arc::new(Notify::new()), std::sync::Arc::new(Notify::new()));
    let (inside, gate) = (entered.clone(), go_on.clone());
    let router = Router::new().route(
        "/slow",
        get(move || {
            let (inside, gate) = (inside.clone(), gate.clone());
            async move {
                inside.notify_one();
                gate.notified().await;
                "done"
            }
        }),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = std::sync::Arc::new(Notify::new());
    let asked = stop.clone();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { serve(listener, router, limits(), async move { asked.notified().await }).await.unwrap() });
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    entered.notified().await;
    stop.notify_one();
    go_on.notify_one();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("done"), "{answer}");
    tasks.join_next().await.unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

// FC-52, A10
#[tokio::test]
async fn a_client_that_sends_no_head_is_cut_off() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { serve(listener, Router::new(), limits(), std::future::pending()).await.unwrap() });
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"GET / HT").await.unwrap();
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(20), client.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "the connection is closed without a head");
}
