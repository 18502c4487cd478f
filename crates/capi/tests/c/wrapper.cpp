// Test of sojourn.hpp, run by tests/c.rs.

#include "sojourn.hpp"

#include <cstdlib>
#include <iostream>
#include <utility>

#define CHECK(condition)                                                     \
    do {                                                                     \
        if (!(condition)) {                                                  \
            std::cerr << __LINE__ << ": " << #condition << "\n";             \
            std::exit(1);                                                    \
        }                                                                    \
    } while (0)

int main()
{
    constexpr std::uint64_t ms = 1000000;

    try {
        sojourn::Qdisc wrong("codle", 10000000);
        CHECK(false);
    } catch (const sojourn::Error &error) {
        CHECK(error.code() == SJ_INVALID);
        CHECK(std::string(error.what()).find("did you mean \"codel\"?") != std::string::npos);
    }

    sojourn::Qdisc qdisc("droptail(limit=3p)", 10000000);
    sojourn::Packet packet;
    packet.len = 1250;
    for (packet.cookie = 0; packet.cookie < 4; packet.cookie++) {
        qdisc.enqueue(5, packet);
    }
    CHECK(qdisc.backlog() == std::make_pair(std::uint64_t{3}, std::uint64_t{3750}));
    CHECK(qdisc.next_dropped()->cookie == 3 && !qdisc.next_dropped());
    try {
        qdisc.enqueue(4, packet);
        CHECK(false);
    } catch (const sojourn::Error &error) {
        CHECK(error.code() == SJ_EARLIER);
    }
    sojourn::Qdisc copy = qdisc.clone();
    sojourn::Qdisc moved = std::move(qdisc);
    for (std::uint64_t cookie = 0; cookie < 3; cookie++) {
        CHECK(moved.dequeue(5)->cookie == cookie && copy.dequeue(5)->cookie == cookie);
    }
    CHECK(!moved.dequeue(5) && moved.ready_at() == SJ_NEVER);

    sojourn::Impairments impairments;
    impairments.jitter_ns = ms;
    for (const bool impaired : {false, true}) {
        sojourn::Link link("fq_codel(variant=linux)", 10000000, 25 * ms, 1,
                           impaired ? impairments : sojourn::Impairments());
        link.push(0, packet);
        std::uint64_t at = link.next_poll();
        std::optional<sojourn::Packet> arrived;
        while (!(arrived = link.poll(at))) {
            at = link.next_poll();
        }
        CHECK(arrived->cookie == 4 && arrived->at == at);
        CHECK(impaired ? at >= 25 * ms && at <= 27 * ms : at == 26 * ms);
        CHECK(link.stats().departed_packets == 1 && !link.next_undelivered());
        link.change(at, 20000000, ms);
        link.push(at, packet);
        CHECK(link.clone().next_poll() == link.next_poll());
        packet.cookie = UINT64_MAX - 1;
        link.push(at, packet);
        std::vector<std::uint8_t> bytes = link.save();
        sojourn::Link loaded = sojourn::Link::load(bytes);
        CHECK(loaded.save() == bytes && loaded.next_poll() == link.next_poll());
        for (const std::uint64_t cookie : {std::uint64_t{4}, UINT64_MAX - 1}) {
            std::optional<sojourn::Packet> one = link.poll(at + 30 * ms), two = loaded.poll(at + 30 * ms);
            CHECK(one->cookie == cookie && two->cookie == cookie && one->at == two->at);
        }
        CHECK(loaded.save() == link.save() && loaded.next_poll() == SJ_NEVER);
        bytes.pop_back();
        for (const auto &wrong : {bytes, std::vector<std::uint8_t>()}) {
            try {
                sojourn::Link::load(wrong);
                CHECK(false);
            } catch (const sojourn::Error &error) {
                CHECK(error.code() == SJ_BAD_SNAPSHOT);
                CHECK(std::string(error.what()).rfind("snapshot: ", 0) == 0);
            }
        }
        packet.cookie = 4;
    }

    sojourn::Simulation simulation(
        "duration = \"2s\"\n[links.up]\nrate = \"10mbit\"\n"
        "[[flows]]\nname = \"bulk\"\npath = [\"up\"]\nrtt = \"20ms\"\n");
    simulation.run_until(1000 * ms);
    sojourn::Simulation same = simulation.clone();
    std::vector<std::uint8_t> snapshot = simulation.save();
    sojourn::Simulation loaded = sojourn::Simulation::load(snapshot);
    CHECK(loaded.now() == 1000 * ms && loaded.save() == snapshot);
    simulation.run_until();
    same.run_until(same.end());
    loaded.run_until();
    CHECK(simulation.now() == 2000 * ms && simulation.result() == same.result());
    CHECK(simulation.result() == loaded.result() && simulation.save() == loaded.save());
    snapshot.back() ^= 1;
    for (const auto &bytes : {snapshot, std::vector<std::uint8_t>()}) {
        try {
            sojourn::Simulation::load(bytes);
            CHECK(false);
        } catch (const sojourn::Error &error) {
            CHECK(error.code() == SJ_BAD_SNAPSHOT);
            CHECK(std::string(error.what()).rfind("snapshot: ", 0) == 0);
        }
    }
    try {
        sojourn::Simulation wrong("duration = 3");
        CHECK(false);
    } catch (const sojourn::Error &error) {
        CHECK(std::string(error.what()).rfind("duration: ", 0) == 0);
    }
    std::cout << "passed\n";
}
