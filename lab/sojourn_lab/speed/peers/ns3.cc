// Runs a list of flows over a fat tree in ns-3: ns3 K DURATION_US FLOWS. The file is that of
// htsim.cc; start times and numbers of packets are ignored. No host may have more than one flow in
// each direction. Prints the same line of JSON.
//
// Acks cross the links. An ack takes the path of the data to its host from where both meet, since
// routes depend on the destination only.

#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

namespace {

const uint16_t PORT = 5000;
const uint32_t PAYLOAD = 1460;

uint64_t hops = 0;

void CountHop(Ptr<const Packet>) {
    ++hops;
}

double ProcessorTime() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

// TCP as in the scenario of sojourn: NewReno, 10 segments, a threshold of 100, an ack per segment.
void SetDefaults() {
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(PAYLOAD));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::InitialSlowStartThreshold", UintegerValue(100 * PAYLOAD));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 20));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(250)));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
    Config::SetDefault("ns3::DropTailQueue<Packet>::MaxSize", StringValue("100p"));
}

class Network {
public:
    explicit Network(uint32_t k) : half(k / 2) {
        uint32_t hosts = k * k * k / 4, switches = k * half;
        nodes.Create(hosts + 2 * switches + half * half);
        edge = hosts;
        aggregation = edge + switches;
        core = aggregation + switches;
        Ipv4StaticRoutingHelper routing;
        InternetStackHelper stack;
        stack.SetRoutingHelper(routing);
        stack.SetIpv6StackInstall(false);
        stack.Install(nodes);
        links.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
        links.SetChannelAttribute("Delay", StringValue("1us"));
        for (uint32_t host = 0; host < hosts; ++host)
            Connect(host, edge + host / half);
        for (uint32_t n = 0; n < switches; ++n) {
            for (uint32_t up = 0; up < half; ++up) {
                Connect(edge + n, aggregation + n / half * half + up);
                Connect(aggregation + n, core + n % half * half + up);
            }
        }
    }

    // Nodes from one host to another along the path `index` of the equal paths.
    std::vector<uint32_t> Path(uint32_t from, uint32_t to, uint32_t index) const {
        uint32_t edges[] = {from / half, to / half}, pods[] = {edges[0] / half, edges[1] / half};
        std::vector<uint32_t> path = {from, edge + edges[0]};
        if (edges[0] != edges[1]) {
            uint32_t up = pods[0] == pods[1] ? index : index / half;
            path.push_back(aggregation + pods[0] * half + up);
            if (pods[0] != pods[1]) {
                path.push_back(core + index);
                path.push_back(aggregation + pods[1] * half + up);
            }
            path.push_back(edge + edges[1]);
        }
        path.push_back(to);
        return path;
    }

    // Routes to the last node of a path, except where there is one already.
    void Route(const std::vector<uint32_t>& path) {
        Ipv4StaticRoutingHelper routing;
        for (size_t i = 0; i + 1 < path.size(); ++i) {
            if (!routes.emplace(std::make_pair(path[i], path.back()), true).second)
                continue;
            Ptr<Ipv4> ipv4 = nodes.Get(path[i])->GetObject<Ipv4>();
            uint32_t interface = interfaces.at({path[i], path[i + 1]});
            routing.GetStaticRouting(ipv4)->AddHostRouteTo(Address(path.back()), interface);
        }
    }

    // Starts a bulk transfer.
    void Send(uint32_t from, uint32_t to, Time end) {
        BulkSendHelper sender("ns3::TcpSocketFactory", InetSocketAddress(Address(to), PORT));
        PacketSinkHelper sink("ns3::TcpSocketFactory",
                              InetSocketAddress(Ipv4Address::GetAny(), PORT));
        sender.SetAttribute("SendSize", UintegerValue(PAYLOAD));
        ApplicationContainer both = sink.Install(nodes.Get(to));
        both.Add(sender.Install(nodes.Get(from)));
        both.Start(Seconds(0));
        both.Stop(end);
    }

private:
    // Address of the first interface of a node.
    static Ipv4Address Address(uint32_t node) {
        return Ipv4Address(0x0a000001 + (node << 8));
    }

    // Connects two nodes. The devices have no queue of the traffic control layer.
    void Connect(uint32_t a, uint32_t b) {
        NetDeviceContainer devices = links.Install(nodes.Get(a), nodes.Get(b));
        for (uint32_t end = 0; end < 2; ++end) {
            uint32_t node = end ? b : a;
            Ptr<Ipv4> ipv4 = nodes.Get(node)->GetObject<Ipv4>();
            uint32_t interface = ipv4->AddInterface(devices.Get(end));
            Ipv4Address address(Address(node).Get() + interface - 1);
            ipv4->AddAddress(interface, Ipv4InterfaceAddress(address, Ipv4Mask("/32")));
            ipv4->SetUp(interface);
            interfaces[{node, end ? a : b}] = interface;
            devices.Get(end)->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&CountHop));
        }
    }

    uint32_t half, edge, aggregation, core;
    NodeContainer nodes;
    PointToPointHelper links;
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> interfaces;
    std::map<std::pair<uint32_t, uint32_t>, bool> routes;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4)
        return 2;
    SetDefaults();
    Network network(std::stoi(argv[1]));
    Time end = MicroSeconds(std::stoi(argv[2]));
    std::vector<std::vector<uint32_t>> backs;
    std::ifstream in(argv[3]);
    uint32_t from, to, forward, back;
    double start_ns;
    uint64_t packets;
    while (in >> from >> to >> forward >> back >> start_ns >> packets) {
        network.Route(network.Path(from, to, forward));
        backs.push_back(network.Path(to, from, back));
        network.Send(from, to, end);
    }
    for (const auto& path : backs)
        network.Route(path);
    Simulator::Stop(end);
    double start = ProcessorTime();
    Simulator::Run();
    double run = ProcessorTime() - start;
    Simulator::Destroy();
    std::cout << "{\"hops\": " << hops << ", \"setup_s\": " << start << ", \"run_s\": " << run
              << "}" << std::endl;
}
