//! Sockets that are passed, by a small activator here and by systemd's own.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;

use relay_sim::{Client, Request};
use rustix::process::Signal;
use tokio::net::UnixDatagram;

use crate::program::{Home, PROGRAM, SOON, end, run, signal};

/// What an activator sets for one socket.
const ONE: &str = "LISTEN_PID=$$ LISTEN_FDS=1";

fn listener() -> (TcpListener, SocketAddr) {
    let socket = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

async fn is_well(address: SocketAddr) -> bool {
    let mut client = Client::connect(address).await.unwrap().patience(SOON);
    client.ask(&Request::get("/healthz")).await.is_ok_and(|answer| answer.status == 200)
}

#[tokio::test]
async fn both_sockets_that_are_passed_are_served_whatever_the_port_of_the_settings() {
    let home = Home::new();
    let ((first, one), (second, other)) = (listener(), listener());
    let variables = "LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=a:b";
    let sockets = vec![OwnedFd::from(first), OwnedFd::from(second)];
    let child = home.activated(sockets, variables, &["serve"]).spawn().unwrap();
    assert!(is_well(one).await && is_well(other).await);
    signal(&child, Signal::TERM);
    let (code, said) = end(child).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains(&format!("passed port {}, which holds, and the settings say 8787", one.port())),
        "{said}"
    );
}

#[tokio::test]
async fn what_is_meant_for_another_process_is_left_alone() {
    let home = Home::new();
    let (socket, address) = listener();
    let line = ["serve", "--port", &address.port().to_string()];
    for variables in ["LISTEN_PID=1 LISTEN_FDS=1", "LISTEN_FDS=1", "LISTEN_PID=$$ LISTEN_FDS=0"] {
        let socket = OwnedFd::from(socket.try_clone().unwrap());
        // It opens its own, and finds the port taken.
        let (code, _, said) = run(&mut home.activated(vec![socket], variables, &line)).await;
        assert!(code == 1 && said.contains("is taken on 127.0.0.1"), "{variables}: {said}");
    }
}

#[tokio::test]
async fn what_is_no_listening_socket_is_told() {
    let home = Home::new();
    let file = OwnedFd::from(std::fs::File::create(home.path("file")).unwrap());
    let datagrams = OwnedFd::from(UdpSocket::bind(("127.0.0.1", 0)).unwrap());
    let (socket, address) = listener();
    let connected = OwnedFd::from(std::net::TcpStream::connect(address).unwrap());
    for (passed, why) in
        [(file, "socket 1 (`web`)"), (datagrams, "socket 1"), (connected, "it does not listen")]
    {
        let variables = format!("{ONE} LISTEN_FDNAMES=web");
        let (code, _, said) = run(&mut home.activated(vec![passed], &variables, &["serve"])).await;
        assert!(code == 1 && said.starts_with("error: ") && said.contains(why), "{said}");
        assert!(said.contains("\nhint: "), "{said}");
    }
    drop(socket);
    for count in ["x", "99"] {
        let variables = format!("LISTEN_PID=$$ LISTEN_FDS={count}");
        let (code, _, said) = run(&mut home.activated(Vec::new(), &variables, &["serve"])).await;
        assert!(code == 1 && said.contains(&format!("LISTEN_FDS is `{count}`")), "{said}");
    }
}

#[tokio::test]
async fn beyond_loopback_a_passed_socket_needs_a_token() {
    let home = Home::new();
    let open = || OwnedFd::from(TcpListener::bind(("0.0.0.0", 0)).unwrap());
    let (code, _, said) = run(&mut home.activated(vec![open()], ONE, &["serve"])).await;
    assert!(code == 1 && said.contains("STEADY_RELAY_TOKEN"), "{said}");
}

#[tokio::test]
async fn the_manager_is_told_when_it_is_ready_and_when_it_stops() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let home = Home::new();
    // The path of such a socket is short.
    let path = std::env::temp_dir().join(format!("steady-relay-notify-{}", std::process::id()));
    drop(std::fs::remove_file(&path));
    let manager = UnixDatagram::bind(&path).unwrap();
    let (socket, _) = listener();
    let mut command = home.activated(vec![socket.into()], ONE, &["serve"]);
    let child = command.env("NOTIFY_SOCKET", &path).spawn().unwrap();
    let heard = async || {
        let mut bytes = [0; 64];
        let length = tokio::time::timeout(SOON, manager.recv(&mut bytes)).await.unwrap().unwrap();
        String::from_utf8_lossy(&bytes[..length]).trim().to_owned()
    };
    assert_eq!(heard().await, "READY=1");
    signal(&child, Signal::TERM);
    assert_eq!(heard().await, "STOPPING=1");
    assert_eq!(end(child).await.0, Some(0));
    std::fs::remove_file(&path).unwrap();
}

#[tokio::test]
async fn systemds_own_activator_starts_it_with_the_first_client() {
    let home = Home::new();
    let (socket, address) = listener();
    drop(socket);
    let mut command = home.command("systemd-socket-activate");
    command.args(["-l", &address.to_string(), "-E", "HOME", "--fdname=steady-relay", PROGRAM, "serve"]);
    let mut child = match command.stderr(std::process::Stdio::null()).spawn() {
        Ok(child) => child,
        Err(_none) => {
            return crate::tools::missing("systemd-socket-activate");
        }
    };
    let listens = async {
        while tokio::net::TcpStream::connect(address).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, listens).await.expect("it listens");
    assert!(is_well(address).await);
    signal(&child, Signal::TERM);
    assert_eq!(tokio::time::timeout(SOON, child.wait()).await.unwrap().unwrap().code(), Some(0));
}
