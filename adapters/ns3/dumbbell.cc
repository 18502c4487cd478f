// Dumbbell in ns-3: TCP flows through one bottleneck, whose queue is a discipline of ns-3 or of
// sojourn. Prints a line of JSON.
//
//   dumbbell --queue='codel(variant=linux)' --flows=4 --tcp=TcpCubic --start=7
//   dumbbell --queue=ns3::CoDelQueueDisc
//
// `--queue=droptail ...`, several names separated by ';', runs one after the other; `--starts=20`
// repeats each with other random numbers.

#include "sojourn-queue-disc.h"

#include "ns3/applications-module.h"
#include "ns3/internet-module.h"
#include "ns3/point-to-point-module.h"

#include <algorithm>
#include <iostream>
#include <vector>

using namespace ns3;

namespace {

struct Options {
    std::string queue;
    std::string tcp = "TcpNewReno";
    uint32_t flows = 4;
    uint32_t start = 1;
    double seconds = 30;
    double warmup = 10;
    bool ecn = false;
};

std::vector<double> sojourns; // seconds, after the warm-up
double warmup_s = 0;

void OnSojourn(Time time) {
    if (Simulator::Now().GetSeconds() >= warmup_s) sojourns.push_back(time.GetSeconds());
}

double Quantile(double q) {
    if (sojourns.empty()) return 0;
    const size_t k = std::min(sojourns.size() - 1, static_cast<size_t>(q * sojourns.size()));
    std::nth_element(sojourns.begin(), sojourns.begin() + k, sojourns.end());
    return sojourns[k];
}

double Mean() {
    double sum = 0;
    for (double s : sojourns) sum += s;
    return sojourns.empty() ? 0 : sum / sojourns.size();
}

void SetQueue(TrafficControlHelper &control, const Options &options) {
    const QueueSizeValue limit(QueueSize("1000p"));
    if (options.queue.rfind("ns3::", 0) != 0) {
        control.SetRootQueueDisc("ns3::SojournQueueDisc", "Discipline", StringValue(options.queue));
    } else if (options.queue == "ns3::RedQueueDisc") {
        control.SetRootQueueDisc(options.queue, "MaxSize", limit, "LinkBandwidth", StringValue("10Mbps"),
                                 "LinkDelay", StringValue("20ms"), "MeanPktSize", UintegerValue(1500));
    } else {
        control.SetRootQueueDisc(options.queue, "MaxSize", limit);
    }
}

// A source at the left and a sink at the right side for each flow.
ApplicationContainer AddFlow(uint32_t i, Ptr<Node> left, Ptr<Node> right, double from_s) {
    NodeContainer hosts(2);
    InternetStackHelper().Install(hosts);
    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
    access.SetChannelAttribute("Delay", TimeValue(MilliSeconds(1 + 5 * i)));
    const NetDeviceContainer near = access.Install(hosts.Get(0), left);
    const NetDeviceContainer far = access.Install(right, hosts.Get(1));
    Ipv4AddressHelper address;
    address.SetBase(("10.1." + std::to_string(i) + ".0").c_str(), "255.255.255.0");
    address.Assign(near);
    address.SetBase(("10.2." + std::to_string(i) + ".0").c_str(), "255.255.255.0");
    const Ipv4InterfaceContainer interfaces = address.Assign(far);
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(interfaces.GetAddress(1), 5000));
    bulk.Install(hosts.Get(0)).Start(Seconds(from_s));
    return sink.Install(hosts.Get(1));
}

void Run(const Options &options) {
    sojourns.clear();
    warmup_s = options.warmup;
    RngSeedManager::SetRun(options.start);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::" + options.tcp));
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue(options.ecn ? "On" : "Off"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));

    NodeContainer routers(2);
    InternetStackHelper().Install(routers);
    PointToPointHelper bottleneck;
    bottleneck.SetDeviceAttribute("DataRate", StringValue("10Mbps"));
    bottleneck.SetChannelAttribute("Delay", StringValue("20ms"));
    bottleneck.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
    const NetDeviceContainer devices = bottleneck.Install(routers);
    TrafficControlHelper control;
    SetQueue(control, options);
    Ptr<QueueDisc> queue = control.Install(devices.Get(0)).Get(0);
    queue->TraceConnectWithoutContext("SojournTime", MakeCallback(&OnSojourn));
    Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(devices);

    Ptr<UniformRandomVariable> random = CreateObject<UniformRandomVariable>();
    random->SetStream(1000);
    ApplicationContainer sinks;
    for (uint32_t i = 0; i < options.flows; i++)
        sinks.Add(AddFlow(i, routers.Get(0), routers.Get(1), random->GetValue(0, 1)));
    sinks.Start(Seconds(0));
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    uint64_t bytes_before = 0, bytes = 0;
    auto received = [&sinks] {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < sinks.GetN(); i++) sum += DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx();
        return sum;
    };
    Simulator::Stop(Seconds(options.warmup));
    Simulator::Run();
    bytes_before = received();
    const QueueDisc::Stats before = queue->GetStats();
    Simulator::Stop(Seconds(options.seconds - options.warmup));
    Simulator::Run();
    bytes = received() - bytes_before;
    const QueueDisc::Stats stats = queue->GetStats();
    std::cout << "{\"queue\": \"" << options.queue << "\", \"tcp\": \"" << options.tcp
              << "\", \"flows\": " << options.flows << ", \"start\": " << options.start
              << ", \"goodput_bps\": " << 8.0 * bytes / (options.seconds - options.warmup)
              << ", \"sojourn_mean_s\": " << Mean() << ", \"sojourn_p99_s\": " << Quantile(0.99)
              << ", \"dropped\": " << stats.nTotalDroppedPackets - before.nTotalDroppedPackets
              << ", \"marked\": " << stats.nTotalMarkedPackets - before.nTotalMarkedPackets
              << ", \"packets\": " << stats.nTotalReceivedPackets << "}" << std::endl;
    Simulator::Destroy();
}

} // namespace

int main(int argc, char *argv[]) {
    Options options;
    uint32_t starts = 1;
    CommandLine command;
    command.AddValue("queue", "text form, or ns3::...QueueDisc; several with ';'", options.queue);
    command.AddValue("tcp", "TcpNewReno or TcpCubic", options.tcp);
    command.AddValue("flows", "number of flows", options.flows);
    command.AddValue("start", "number of the random numbers", options.start);
    command.AddValue("starts", "runs, with the next random numbers each", starts);
    command.AddValue("seconds", "end of the run", options.seconds);
    command.AddValue("warmup", "seconds that are not measured", options.warmup);
    command.AddValue("ecn", "negotiate ECN", options.ecn);
    command.Parse(argc, argv);
    std::istringstream queues(options.queue);
    while (std::getline(queues, options.queue, ';'))
        for (uint32_t k = 0; k < starts; k++) {
            Run(options);
            options.start += k + 1 < starts ? 1 : 1 - starts;
        }
    return 0;
}
