//! Rules of the network, one a test.

use super::*;

const CLIENT: HostId = HostId(5);
const SERVER: HostId = HostId(0);

fn network() -> (Network<u32>, ConnectionId) {
    let mut network = Network::default();
    let number = network.dial(CLIENT, SERVER, 0, 1);
    (network, number)
}

fn message(what: u32) -> Arrival<u32> {
    Arrival::Message(what)
}

#[test]
fn a_fast_message_does_not_overtake_a_slow_one() {
    let (mut network, number) = network();
    assert_eq!(network.send(number, Direction::Up, message(1), 0, 100), Some(100));
    assert_eq!(network.send(number, Direction::Up, message(2), 10, 5), Some(100));
    assert_eq!(network.arrive(number, Direction::Up, 99), None);
    assert_eq!(network.arrive(number, Direction::Up, 100), Some(message(1)));
    assert_eq!(network.arrive(number, Direction::Up, 100), Some(message(2)));
    assert_eq!(network.arrive(number, Direction::Up, 100), None);
}

#[test]
fn a_partition_holds_and_the_heal_sends_again_in_order() {
    let (mut network, number) = network();
    network.cut(CLIENT, SERVER);
    network.send(number, Direction::Up, message(1), 0, 10);
    assert_eq!(network.arrive(number, Direction::Up, 10), None);
    assert_eq!(network.send(number, Direction::Up, message(2), 20, 10), None);
    network.heal(CLIENT, SERVER);
    let mut arrivals = Vec::new();
    network.retransmit(1_000_000_000, &Choices::new(1), |_, _, at_ns| arrivals.push(at_ns));
    assert_eq!(arrivals.len(), 2);
    assert!(arrivals[0] > 1_000_000_000 && arrivals[0] == arrivals[1]);
    assert_eq!(network.arrive(number, Direction::Up, arrivals[0]), Some(message(1)));
    assert_eq!(network.arrive(number, Direction::Up, arrivals[0]), Some(message(2)));
}

#[test]
fn one_way_is_one_way() {
    let (mut network, number) = network();
    network.cut(SERVER, CLIENT);
    network.send(number, Direction::Up, message(1), 0, 10);
    assert_eq!(network.arrive(number, Direction::Up, 10), Some(message(1)));
    network.send(number, Direction::Down, message(2), 10, 10);
    assert_eq!(network.arrive(number, Direction::Down, 20), None);
}

#[test]
fn messages_on_a_silent_connection_never_arrive() {
    let (mut network, number) = network();
    network.send(number, Direction::Up, message(1), 0, 10);
    network.cut(CLIENT, SERVER);
    assert_eq!(network.arrive(number, Direction::Up, 10), None, "held so far");
    network.silence(CLIENT, SERVER);
    assert_eq!(network.send(number, Direction::Up, message(2), 20, 10), None);
    network.heal(CLIENT, SERVER);
    network.retransmit(30, &Choices::new(1), |_, _, _| panic!("by whom?"));
    assert_eq!(network.arrive(number, Direction::Up, u64::MAX), None);
    let after = network.send(number, Direction::Up, message(3), 40, 10);
    assert_eq!(after, None, "it stays silent after the heal");
    network.send(number, Direction::Down, message(4), 40, 10);
    assert_eq!(network.arrive(number, Direction::Down, 50), Some(message(4)), "the other way");
}

#[test]
fn a_reset_by_the_network_discards_what_has_not_arrived() {
    let (mut network, number) = network();
    network.send(number, Direction::Up, message(1), 0, 10);
    network.reset(number);
    assert_eq!(network.arrive(number, Direction::Up, 10), None);
    assert_eq!(network.send(number, Direction::Up, message(2), 20, 10), None);
}

#[test]
fn the_last_words_of_a_dead_client_arrive() {
    let (mut network, number) = network();
    network.send(number, Direction::Up, message(1), 0, 10);
    network.close(number, Unsent::Retransmitted);
    assert_eq!(network.arrive(number, Direction::Up, 10), Some(message(1)));
}

#[test]
fn messages_of_a_host_without_power_arrive_and_are_not_resent() {
    for cut_before in [true, false] {
        let (mut network, number) = network();
        network.send(number, Direction::Up, message(1), 0, 10);
        assert_eq!(network.arrive(number, Direction::Up, 10), Some(message(1)));
        network.send(number, Direction::Up, message(2), 10, 10);
        network.cut(CLIENT, SERVER);
        if cut_before {
            assert_eq!(network.arrive(number, Direction::Up, 20), None);
        }
        network.close(number, Unsent::Dropped);
        assert_eq!(network.arrive(number, Direction::Up, 20), None);
        network.heal(CLIENT, SERVER);
        network.retransmit(30, &Choices::new(1), |_, _, _| panic!("by whom?"));
        assert_eq!(network.arrive(number, Direction::Up, u64::MAX), None);
    }
    let (mut network, number) = network();
    network.send(number, Direction::Up, message(1), 0, 10);
    network.close(number, Unsent::Dropped);
    assert_eq!(network.arrive(number, Direction::Up, 10), Some(message(1)));
}

#[test]
fn a_later_connection_may_overtake_what_is_on_the_wire() {
    let (mut network, number) = network();
    network.send(number, Direction::Up, message(1), 0, 30);
    network.close(number, Unsent::Dropped);
    let later = network.dial(CLIENT, SERVER, 0, 2);
    network.send(later, Direction::Up, message(2), 10, 10);
    assert_eq!(network.arrive(later, Direction::Up, 20), Some(message(2)));
    assert_eq!(network.arrive(number, Direction::Up, 20), None);
    assert_eq!(network.arrive(number, Direction::Up, 30), Some(message(1)));
}
