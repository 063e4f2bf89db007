//! The driver's side of an agent: orders go out in batches, events come in, each on a thread of its own.
//!
//! ```text
//!   order ──▶ queue ──POST /orders, as many as there are──▶ agent
//!   Inbox ◀───────────GET /events, again and again───────── agent
//! ```
//!
//! The rules that must hold: orders arrive in their order, each once; and an agent of which nothing is heard for so long is
//! silent for good: what it says later is not heard. One whose node refuses connections has ended, and is lost sooner. One that
//! refuses orders for a while is gone as well: no order is sent again for ever.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, StatusCode};

use super::inbox::{AgentMessage, Inbox};
use super::messages::{AgentOrder, Events, ORDERS_BYTES_MAX, Orders};
use gristmill_base::sync::lock;
use gristmill_base::sys::threads::begin;
use gristmill_storage::agents::AgentPlace;
use gristmill_storage::net::http_client::{HttpClient, HttpReply, TransportError, TransportPolicy};
use gristmill_tasks::task::wire;

/// How long an agent may be silent.
pub(super) const SILENCE: Duration = Duration::from_secs(10);

/// The same, where its node answers that it has ended.
const REFUSALS: Duration = Duration::from_secs(2);

/// A request that takes longer is sent again. An agent answers within a second, and one of these may be lost.
const REQUEST_LIMIT: Duration = Duration::from_secs(4);

/// Orders with user code and its data take longer: at least so long, and longer by their bytes.
const ORDERS_LIMIT: Duration = Duration::from_secs(60);

/// How long an agent may answer that it does not take orders.
const REFUSED_LIMIT: Duration = Duration::from_secs(5);

/// Requests with the same orders that are not answered, at most.
const TRIES: u32 = 3;

/// Before the next try.
const WAIT: Duration = Duration::from_millis(100);

/// Orders in one request.
const ORDERS_AT_ONCE: usize = 1000;

#[derive(Debug)]
struct OutgoingOrders {
    orders: VecDeque<AgentOrder>,
    /// How many were sent.
    sent: u64,
    heard: Instant,
    /// Nothing is to be said to it, or heard of it, any more.
    over: bool,
    /// All is over once its orders have come.
    leaves: bool,
}

/// Why a request was not done.
enum RequestFailure {
    /// The agent says so.
    Refused(String),
    /// There is no answer.
    Unanswered(String),
}

/// An agent, as the driver reaches it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) number: u32,
    place: AgentPlace,
    authorization: String,
    client: Arc<HttpClient>,
    policy: TransportPolicy,
    out: Mutex<OutgoingOrders>,
    changed: Condvar,
    inbox: Arc<Inbox>,
}

impl Link {
    /// Begins to talk to an agent.
    pub(super) fn begin(
        number: u32,
        (place, token): (&AgentPlace, &str),
        (client, policy): (&Arc<HttpClient>, &TransportPolicy),
        inbox: &Arc<Inbox>,
    ) -> Arc<Self> {
        let link = Arc::new(Link {
            number,
            place: place.clone(),
            authorization: format!("Bearer {token}"),
            client: Arc::clone(client),
            policy: policy.clone(),
            out: Mutex::new(OutgoingOrders {
                orders: VecDeque::new(),
                sent: 0,
                heard: Instant::now(),
                over: false,
                leaves: false,
            }),
            changed: Condvar::new(),
            inbox: Arc::clone(inbox),
        });
        let (sending, asking) = (Arc::clone(&link), Arc::clone(&link));
        let threads = [
            begin("orders", move || sending.send()),
            begin("events", move || asking.ask()),
        ];
        for refused in threads.into_iter().filter_map(Result::err) {
            link.give_up(format!("cannot be talked to: {refused}"));
        }
        link
    }

    fn out(&self) -> MutexGuard<'_, OutgoingOrders> {
        lock(&self.out)
    }

    /// Where it is.
    pub(super) fn address(&self) -> &str {
        &self.place.address
    }

    /// Sends an order, soon.
    pub(super) fn order(&self, order: AgentOrder) {
        self.keep(order);
        self.send_kept();
    }

    /// Keeps an order until it is said to send what was kept: others may come with it.
    pub(super) fn keep(&self, order: AgentOrder) {
        self.out().orders.push_back(order);
    }

    /// Sends what was kept.
    pub(super) fn send_kept(&self) {
        self.changed.notify_all();
    }

    /// Sends this order after all others, and hears nothing any more.
    pub(super) fn leave(&self, last: AgentOrder) {
        let mut out = self.out();
        out.orders.push_back(last);
        out.leaves = true;
        drop(out);
        self.changed.notify_all();
    }

    /// Says nothing more, and hears nothing; of one that leaves, once it was told to.
    pub(super) fn cut(&self) {
        let mut out = self.out();
        out.over = !out.leaves;
        drop(out);
        self.changed.notify_all();
    }

    /// Waits until all orders have come, but not longer than this.
    pub(super) fn flush(&self, longest: Duration) {
        let busy = |out: &mut OutgoingOrders| !out.orders.is_empty() && !out.over;
        let waited = self.changed.wait_timeout_while(self.out(), longest, busy);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// The orders that come next, with the number of the first; nothing when all is over.
    fn batch(&self) -> Option<Orders> {
        let idle = |out: &mut OutgoingOrders| out.orders.is_empty() && !out.over && !out.leaves;
        let waited = self.changed.wait_while(self.out(), idle);
        let out = waited.unwrap_or_else(PoisonError::into_inner);
        (!out.over && !out.orders.is_empty()).then(|| Orders {
            first: out.sent,
            orders: out.orders.iter().take(ORDERS_AT_ONCE).cloned().collect(),
        })
    }

    fn send(&self) {
        while let Some(batch) = self.batch() {
            let body = match wire::to_bytes(&batch) {
                Ok(body) if body.len() <= ORDERS_BYTES_MAX => Bytes::from(body),
                Ok(body) => return self.give_up(too_large(body.len())),
                Err(error) => return self.give_up(format!("cannot be told: {error}")),
            };
            match self.deliver(&body) {
                Ok(true) => {}
                Ok(false) => return,
                Err(why) => return self.give_up(why),
            }
            let mut out = self.out();
            out.sent += batch.orders.len() as u64;
            out.orders.drain(..batch.orders.len());
            drop(out);
            self.changed.notify_all();
        }
    }

    /// Sends orders until they are taken, and says so; or nothing is to be said any more. Fails with what the agent does instead.
    fn deliver(&self, body: &Bytes) -> Result<bool, String> {
        let limit = ORDERS_LIMIT.max(self.client.limit(body.len()));
        let (mut refused, mut unanswered): (Option<Instant>, u32) = (None, 0);
        loop {
            let taken = self.request(Method::POST, "/orders", body.clone(), limit);
            if taken.is_ok() || self.out().over {
                return Ok(taken.is_ok());
            }
            match taken {
                Err(RequestFailure::Refused(why)) => {
                    let since = refused.get_or_insert_with(Instant::now);
                    if since.elapsed() >= REFUSED_LIMIT {
                        return Err(format!("refuses orders: {why}"));
                    }
                }
                Err(RequestFailure::Unanswered(_)) if self.is_over() => return Ok(false), // it leaves
                Err(RequestFailure::Unanswered(why)) => {
                    unanswered += u32::from(!self.is_silent());
                    if unanswered >= TRIES {
                        return Err(format!("takes no orders: {why}"));
                    }
                }
                Ok(_) => {}
            }
            sleep(WAIT);
        }
    }

    /// Whether nothing was heard of it just now, either: then it is soon known whether it is there.
    fn is_silent(&self) -> bool {
        self.out().heard.elapsed() > REQUEST_LIMIT
    }

    /// Takes an agent for lost that cannot be told what to do.
    fn give_up(&self, why: String) {
        self.cut();
        self.inbox.add(self.number, AgentMessage::Gone(why));
    }

    fn ask(&self) {
        let mut known = 0;
        loop {
            let heard = self.events(&mut known);
            if self.is_over() {
                return;
            }
            match heard {
                Ok(events) => {
                    self.out().heard = Instant::now();
                    self.inbox
                        .add(self.number, AgentMessage::Events(Box::new(events)));
                }
                Err(why) => {
                    let longest = if self.is_refused() { REFUSALS } else { SILENCE };
                    if self.out().heard.elapsed() > longest {
                        return self.give_up(format!("is silent: {why}"));
                    }
                    sleep(WAIT);
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        let out = self.out();
        out.over || out.leaves
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
        let reply = self.request(Method::GET, &path, Bytes::new(), REQUEST_LIMIT);
        let reply = reply
            .map_err(|(RequestFailure::Refused(why) | RequestFailure::Unanswered(why))| why)?;
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
    ) -> Result<HttpReply, RequestFailure> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.place.url()))
            .header("authorization", &self.authorization)
            .body(body.into())
            .map_err(|error| RequestFailure::Refused(error.to_string()))?;
        let reply = self.client.send(&self.policy, request, &mut [], limit);
        let reply = reply.map_err(|broken| {
            RequestFailure::Unanswered(match broken {
                TransportError::Here(error) => error.to_string(),
                TransportError::There(why) => why,
                TransportError::Untrusted(distrust) => {
                    let (what, advice) =
                        distrust.says(self.policy.bundle.as_ref(), "RAY_TLS_CA_CERT");
                    format!("{what} ({advice})")
                }
                TransportError::Stopped => "it is to end".to_owned(),
            })
        })?;
        match reply.status {
            StatusCode::OK | StatusCode::NO_CONTENT => Ok(reply),
            status => {
                let said = String::from_utf8_lossy(&reply.body);
                Err(RequestFailure::Refused(format!(
                    "it answered {status} {}",
                    said.trim()
                )))
            }
        }
    }
}

fn too_large(bytes: usize) -> String {
    format!(
        "cannot be told: functions and what they refer to take {bytes} bytes, and an agent takes {ORDERS_BYTES_MAX} at once: have them read \
         large data from a file"
    )
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;
    use gristmill_storage::agents::agent_transport;

    /// An agent that lives, and answers each batch of orders so: where it is.
    fn agent_that_answers(orders: &'static str) -> AgentPlace {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let events = wire::to_bytes(&Events::default()).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, mut head) = (stream.unwrap(), [0; 1 << 16]);
                let read = stream.read(&mut head).unwrap_or(0);
                let (status, body) = match head[..read].starts_with(b"GET") {
                    true => ("200 OK", events.as_slice()),
                    false => (orders, &b"cannot write agents.new"[..]),
                };
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
                );
                let _ = stream.write_all(&[head.as_bytes(), body].concat());
            }
        });
        AgentPlace {
            address,
            ..AgentPlace::default()
        }
    }

    #[test]
    fn orders_that_are_refused_are_not_sent_for_ever() {
        let place = agent_that_answers("500 Internal Server Error");
        let (client, inbox) = (Arc::new(HttpClient::default()), Arc::<Inbox>::default());
        let link = Link::begin(4, (&place, "t"), (&client, &agent_transport(None)), &inbox);
        link.order(AgentOrder::End { runs_stay: false });
        let began = Instant::now();
        let why = loop {
            match inbox.next(Duration::from_secs(1)) {
                Some((4, AgentMessage::Gone(why))) => break why,
                _ => assert!(began.elapsed() < Duration::from_secs(60)),
            }
        };
        assert!(why.starts_with("refuses orders: "), "{why}");
        assert!(why.contains("cannot write agents.new"), "{why}");
        assert!(link.batch().is_none(), "nothing more is said");
    }
}
