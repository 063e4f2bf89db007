//! The driver's side of an agent: orders go out in batches, events come in, each on a thread of its own.
//!
//! ```text
//!   order ──▶ queue ──POST /orders, as many as there are──▶ agent
//!   Heard ◀───────────GET /events, again and again───────── agent
//! ```
//!
//! The rules that must hold: orders arrive in their order, each once; and an agent of which nothing is heard for so long is
//! silent for good: what it says later is not heard. One whose node refuses connections has ended, and is lost sooner.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::Sender as Told;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, StatusCode};

use super::messages::{Events, ORDERS_BYTES_MAX, Order, Orders};
use crate::error::Result;
use crate::storage::agents::AgentPlace;
use crate::storage::wire::{Broken, Reply, Way, Wire};
use crate::task::wire;

/// How long an agent may be silent.
pub(super) const SILENCE: Duration = Duration::from_secs(10);

/// The same, where its node answers that it has ended.
const REFUSALS: Duration = Duration::from_secs(2);

/// A request that takes longer is sent again. An agent answers within a second, and one of these may be lost.
const REQUEST_LIMIT: Duration = Duration::from_secs(4);

/// Orders with user code and its data take longer: at least so long, and longer by their bytes.
const ORDERS_LIMIT: Duration = Duration::from_secs(60);

/// Before the next try.
const WAIT: Duration = Duration::from_millis(100);

/// Orders in one request.
const ORDERS_AT_ONCE: usize = 1000;

/// What is heard of an agent.
#[derive(Debug)]
pub(super) enum Heard {
    /// What happened there.
    Events(Box<Events>),
    /// Nothing any more, and why.
    Silent(String),
}

#[derive(Debug)]
struct Out {
    orders: VecDeque<Order>,
    /// How many were sent.
    sent: u64,
    heard: Instant,
    /// Nothing is to be said to it, or heard of it, any more.
    over: bool,
}

/// An agent, as the driver reaches it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) number: u32,
    place: AgentPlace,
    authorization: String,
    wire: Arc<Wire>,
    way: Way,
    out: Mutex<Out>,
    changed: Condvar,
}

impl Link {
    /// Begins to talk to an agent.
    pub(super) fn begin(
        number: u32,
        (place, token): (&AgentPlace, &str),
        (wire, way): (&Arc<Wire>, &Way),
        tell: &Told<(u32, Heard)>,
    ) -> Arc<Self> {
        let link = Arc::new(Link {
            number,
            place: place.clone(),
            authorization: format!("Bearer {token}"),
            wire: Arc::clone(wire),
            way: way.clone(),
            out: Mutex::new(Out {
                orders: VecDeque::new(),
                sent: 0,
                heard: Instant::now(),
                over: false,
            }),
            changed: Condvar::new(),
        });
        let (sending, asking, tell) = (Arc::clone(&link), Arc::clone(&link), tell.clone());
        let told = tell.clone();
        thread::spawn(move || sending.send(&told));
        thread::spawn(move || asking.ask(&tell));
        link
    }

    fn out(&self) -> MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it is.
    pub(super) fn address(&self) -> &str {
        &self.place.address
    }

    /// Sends an order, soon.
    pub(super) fn order(&self, order: Order) {
        self.keep(order);
        self.send_kept();
    }

    /// Keeps an order until it is said to send what was kept: others may come with it.
    pub(super) fn keep(&self, order: Order) {
        self.out().orders.push_back(order);
    }

    /// Sends what was kept.
    pub(super) fn send_kept(&self) {
        self.changed.notify_all();
    }

    /// How long nothing was heard.
    pub(super) fn silence(&self) -> Duration {
        self.out().heard.elapsed()
    }

    /// Says nothing more, and hears nothing.
    pub(super) fn cut(&self) {
        self.out().over = true;
        self.changed.notify_all();
    }

    /// Waits until all orders have come, but not longer than this.
    pub(super) fn flush(&self, longest: Duration) {
        let busy = |out: &mut Out| !out.orders.is_empty() && !out.over;
        let waited = self.changed.wait_timeout_while(self.out(), longest, busy);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// The orders that come next, with the number of the first; nothing when all is over.
    fn batch(&self) -> Option<Orders> {
        let idle = |out: &mut Out| out.orders.is_empty() && !out.over;
        let waited = self.changed.wait_while(self.out(), idle);
        let out = waited.unwrap_or_else(PoisonError::into_inner);
        (!out.over).then(|| Orders {
            first: out.sent,
            orders: out.orders.iter().take(ORDERS_AT_ONCE).cloned().collect(),
        })
    }

    fn send(&self, tell: &Told<(u32, Heard)>) {
        while let Some(batch) = self.batch() {
            let body = match wire::to_bytes(&batch) {
                Ok(body) if body.len() <= ORDERS_BYTES_MAX => Bytes::from(body),
                Ok(body) => return self.give_up(tell, too_large(body.len())),
                Err(error) => return self.give_up(tell, error.to_string()),
            };
            let limit = ORDERS_LIMIT.max(self.wire.limit(body.len()));
            loop {
                let reply = self.request(Method::POST, "/orders", body.clone(), limit);
                match reply {
                    Ok(_) => break,
                    Err(_) if self.out().over => return,
                    Err(_) => sleep(WAIT),
                }
            }
            let mut out = self.out();
            out.sent += batch.orders.len() as u64;
            out.orders.drain(..batch.orders.len());
            drop(out);
            self.changed.notify_all();
        }
    }

    /// Takes an agent for lost that cannot be told what to do.
    fn give_up(&self, tell: &Told<(u32, Heard)>, why: String) {
        self.cut();
        // No one hears it where the job is over.
        let _ = tell.send((self.number, Heard::Silent(why)));
    }

    fn ask(&self, tell: &Told<(u32, Heard)>) {
        let mut known = 0;
        loop {
            let heard = self.events(&mut known);
            if self.out().over {
                return;
            }
            let said = match heard {
                Ok(events) => {
                    self.out().heard = Instant::now();
                    Heard::Events(Box::new(events))
                }
                Err(why) => {
                    let longest = if self.is_refused() { REFUSALS } else { SILENCE };
                    if self.silence() <= longest {
                        sleep(WAIT);
                        continue;
                    }
                    self.cut();
                    Heard::Silent(why)
                }
            };
            let is_last = matches!(said, Heard::Silent(_));
            if tell.send((self.number, said)).is_err() || is_last {
                return;
            }
        }
    }

    /// Whether the node says that no process has the agent's port: it has ended.
    fn is_refused(&self) -> bool {
        let address = self.place.address.parse::<SocketAddr>();
        address.is_ok_and(|address| {
            let tried = TcpStream::connect_timeout(&address, WAIT);
            tried.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
        })
    }

    /// The events after those that are known.
    fn events(&self, known: &mut u64) -> Result<Events, String> {
        let path = format!("/events?after={known}");
        let reply = self.request(Method::GET, &path, Bytes::new(), REQUEST_LIMIT)?;
        let mut events: Events =
            wire::from_bytes(&reply.body).map_err(|error| error.to_string())?;
        let before = known.saturating_sub(events.first) as usize;
        events.over.drain(..before.min(events.over.len()));
        *known = events.first.max(*known) + events.over.len() as u64;
        Ok(events)
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        limit: Duration,
    ) -> Result<Reply, String> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.place.url()))
            .header("authorization", &self.authorization)
            .body(body.into())
            .map_err(|error| error.to_string())?;
        let reply = self.wire.send(&self.way, request, &mut [], limit);
        let reply = reply.map_err(|broken| match broken {
            Broken::Here(error) => error.to_string(),
            Broken::There(why) => why,
            Broken::Untrusted(distrust) => {
                let (what, advice) = distrust.says(self.way.bundle.as_ref(), "RAY_TLS_CA_CERT");
                format!("{what} ({advice})")
            }
            Broken::Stopped => "it is to end".to_owned(),
        })?;
        match reply.status {
            StatusCode::OK | StatusCode::NO_CONTENT => Ok(reply),
            status => {
                let said = String::from_utf8_lossy(&reply.body);
                Err(format!("it answered {status} {}", said.trim()))
            }
        }
    }
}

fn too_large(bytes: usize) -> String {
    format!(
        "functions and what they refer to take {bytes} bytes, and an agent takes {ORDERS_BYTES_MAX} at once: have them read \
         large data from a file"
    )
}
