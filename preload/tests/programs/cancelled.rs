//! Threads that end in the middle of a call.

use crate::place::{TestDir, out};
use roctop_ring::record::Body;
use std::process::Command;

#[test]
fn threads_cancelled_inside_a_call_return_their_rings() {
    let Some(place) = TestDir::new() else { return };
    let name = "libamdhip64.so.5";
    let soname = format!("-Wl,-soname,{name}");
    place.compile(
        "cancelled",
        name,
        &["-DLIBRARY", "-shared", "-fPIC", "-pthread", &soname],
    );
    let folder = place.dir.display();
    let (search, path) = (format!("-L{folder}"), format!("-Wl,-rpath,{folder}"));
    let words = ["-pthread", &search, "-l:libamdhip64.so.5", &path];
    let program = place.compile("cancelled", "cancelled", &words);
    let plain = Command::new(&program).output().unwrap();
    let traced = place.traced(&program).output().unwrap();
    assert_eq!(out(&plain), "30 cancelled, 30 cleaned\n");
    assert_eq!((out(&traced), traced.status.code()), (out(&plain), Some(0)));
    // One after the other they need two rings; the first file has seven.
    let [ring] = &place.rings()[..] else {
        panic!("one ring file")
    };
    assert_eq!(ring.lost, 0);
    let calls = ring.calls();
    let returned = calls.iter().filter(|(name, _)| name == "hipGetDevice").count();
    assert_eq!(returned, 60, "{calls:?}");
    for (_, _, body) in &ring.records {
        if let Body::ApiCall(call) = body {
            assert_eq!(call.parent, 0, "no call is inside of one that was cancelled");
        }
    }
    // A call that never returned has no end to be recorded with.
    assert_eq!(calls.len(), returned);
}
