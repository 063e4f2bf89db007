//! How names and refusals of agents are read.

use super::*;
use crate::layered::Layered;
use crate::memory::Memory;
use crate::run_name::MEMORY_PLACE;
use crate::{OutputStore, Store};

fn put(store: &Layered, path: &str, data: &[u8]) {
    let file = store.create(path.as_ref(), data.len() as u64, Caching::Cached);
    file.unwrap().write_at(data, 0).unwrap();
}

/// All see the same folders here; memory is of one process.
#[test]
fn runs_in_memory_are_read_where_they_are_by_their_agent_alone() {
    let disk = Memory::with_room_for(1 << 20);
    let store = Arc::new(Layered::new(Arc::new(disk.clone()), 100));
    put(&store, "memory:/run-1", b"in memory");
    put(&store, "/spill/run-1", b"on disk");
    put(&store, "/spill/nonce", b"of agent 0");
    let place = AgentPlace {
        folders: vec![MEMORY_PLACE.into(), "/spill".into()],
        nonce: "of agent 0".into(),
        ..AgentPlace::default()
    };
    let own = Agents::of_agent(0, "token".into(), "/told".into(), true);
    let other = Agents::of_agent(1, "token".into(), "/told-1".into(), true);
    for agents in [&own, &other] {
        agents.change(|table| drop(table.agents.insert(0, place.clone())));
    }
    own.show(&*store).unwrap();
    let below = Agents::of_file(&*store, "/told".into()).unwrap();
    let is_file = |agents: &Agents, run: &str| {
        let found = agents.find(&*store, &RunName::of(run.as_ref()).unwrap());
        matches!(found.unwrap(), RunLocation::File(_))
    };
    let in_memory = [&own, &other, &below].map(|agents| is_file(agents, "agent:0/0/run-1"));
    let on_disk = [&own, &other, &below].map(|agents| is_file(agents, "agent:0/1/run-1"));
    assert_eq!((in_memory, on_disk), ([true, false, false], [true; 3]));
    let disk = AgentDisk::new(store, Arc::new(own));
    let mut bytes = [0; 9];
    let file = disk.open("agent:0/0/run-1".as_ref(), Caching::Cached);
    file.unwrap().read_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"in memory");
    disk.remove("agent:0/0/run-1".as_ref()).unwrap();
    assert!(
        disk.open("agent:0/0/run-1".as_ref(), Caching::Cached)
            .is_err()
    );
}
