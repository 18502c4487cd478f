// Runs a list of flows over a fat tree in csg-htsim: htsim HOSTS newreno|dctcp same|own
// direct|links DURATION_US FLOWS. Each line of the file FLOWS has six numbers: sender, receiver, path of the
// data, path of the acks (indices of the equal paths), start in ns, packets (0: no end).
// Prints one line of JSON: packet-hops, and the processor time in seconds of set-up and of the run.
//
// Links of the tree are replaced by links that count. With `same`, queues are replaced too: each
// holds 100 packets and drops at the tail; with DCTCP it holds 400 kB and marks above 90 kB. `own`
// queues of 100 packets drop at random when nearly full, and have priorities at the hosts.

#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <vector>

#include "dctcp.h"
#include "ecnqueue.h"
#include "eventlist.h"
#include "fat_tree_topology.h"
#include "logfile.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

namespace {

const int PACKET = 1500;
const int QUEUE_PACKETS = 100;
const mem_b DCTCP_LIMIT = 400000;
const mem_b DCTCP_THRESHOLD = 90000;
const double RATE_MBPS = 10000;
const double SCAN_MS = 10;

uint64_t hops = 0;

// A link that counts the packets sent over it.
class CountedPipe : public Pipe {
public:
    CountedPipe(simtime_picosec delay, EventList& events) : Pipe(delay, events) {}
    void receivePacket(Packet& packet) override {
        ++hops;
        Pipe::receivePacket(packet);
    }
};

double processor_time() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

// Queues and links of one kind in place of those of the tree, made when a route first has them.
class Network {
public:
    Network(int hosts, bool dctcp, bool own, EventList& events)
        : dctcp(dctcp), own(own), events(events),
          tree(hosts, speedFromMbps(RATE_MBPS), memFromPkt(QUEUE_PACKETS), nullptr, &events,
               nullptr, dctcp ? ECN : RANDOM) {}

    // A route along the path `index` of the equal paths, to the end `sink`.
    Route* route(uint32_t from, uint32_t to, size_t index, PacketSink* sink) {
        auto& paths = all_paths[std::make_pair(from, to)];
        if (!paths)
            paths = tree.get_bidir_paths(from, to, false);
        const Route* original = paths->at(index);
        Route* copy = new Route();
        for (size_t i = 0; i < original->size(); i += 2) {
            auto& link = links[original->at(i)];
            if (!link.first) {
                link.first = own ? original->at(i) : queue();
                link.second = new CountedPipe(timeFromUs(1u), events);
            }
            copy->push_back(link.first);
            copy->push_back(link.second);
        }
        copy->push_back(sink);
        return copy;
    }

private:
    PacketSink* queue() {
        linkspeed_bps rate = speedFromMbps(RATE_MBPS);
        if (dctcp)
            return new ECNQueue(rate, DCTCP_LIMIT, events, nullptr, DCTCP_THRESHOLD);
        return new Queue(rate, memFromPkt(QUEUE_PACKETS), events, nullptr);
    }

    bool dctcp, own;
    EventList& events;
    FatTreeTopology tree;
    std::map<std::pair<uint32_t, uint32_t>, std::vector<const Route*>*> all_paths;
    std::map<PacketSink*, std::pair<PacketSink*, PacketSink*>> links;
};

struct Flow {
    uint32_t from, to;
    size_t forward, back;
    double start_ns;
    uint64_t packets;
};

std::vector<Flow> read_flows(const char* file) {
    std::vector<Flow> flows;
    std::ifstream in(file);
    Flow flow;
    while (in >> flow.from >> flow.to >> flow.forward >> flow.back >> flow.start_ns >> flow.packets)
        flows.push_back(flow);
    return flows;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 7)
        return 2;
    std::streambuf* out = std::cout.rdbuf(nullptr);  // htsim prints while it runs
    bool dctcp = std::string(argv[2]) == "dctcp", own = std::string(argv[3]) == "own";
    bool direct = std::string(argv[4]) == "direct";
    EventList& events = EventList::getTheEventList();
    events.setEndtime(timeFromUs(std::stod(argv[5])));
    Packet::set_packet_size(PACKET);
    Network network(std::stoi(argv[1]), dctcp, own, events);
    TcpRtxTimerScanner scanner(timeFromMs(SCAN_MS), events);
    for (const Flow& flow : read_flows(argv[6])) {
        TcpSrc* source = dctcp ? new DCTCPSrc(nullptr, nullptr, events)
                               : new TcpSrc(nullptr, nullptr, events);
        TcpSink* sink = new TcpSink();
        if (flow.packets)
            source->_flow_size = flow.packets * PACKET - 1;  // packets are sent while below it
        scanner.registerTcp(*source);
        Route* back;
        if (direct) {
            back = new Route();
            back->push_back(source);
        } else {
            back = network.route(flow.to, flow.from, flow.back, source);
        }
        Route* forward = network.route(flow.from, flow.to, flow.forward, sink);
        source->connect(*forward, *back, *sink, timeFromNs(flow.start_ns));
    }
    double start = processor_time();
    while (events.doNextEvent()) {
    }
    double run = processor_time() - start;
    std::cout.rdbuf(out);
    std::cout << "{\"hops\": " << hops << ", \"setup_s\": " << start << ", \"run_s\": " << run
              << "}" << std::endl;
}
