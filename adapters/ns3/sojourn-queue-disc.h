// Queue discipline of ns-3 that decides with sojourn: any discipline of `sojourn list disciplines`,
// in its text form. Link with libsojourn.
//
//   TrafficControlHelper control;
//   control.SetRootQueueDisc("ns3::SojournQueueDisc", "Discipline", StringValue("codel(target=5ms)"));

#ifndef SOJOURN_QUEUE_DISC_H
#define SOJOURN_QUEUE_DISC_H

#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"

#include <optional>
#include <sojourn.hpp>
#include <unordered_map>

namespace ns3 {

// Packets of a discipline, which leave in any order. ns-3 counts them here.
class SojournStore : public Queue<QueueDiscItem> {
public:
    using Place = Iterator;

    SojournStore() { SetMaxSize(QueueSize("4294967295p")); } // the discipline has the limit

    Place Insert(Ptr<QueueDiscItem> item) {
        Place place;
        DoEnqueue(GetContainer().end(), item, place);
        return place;
    }

    Ptr<QueueDiscItem> Take(Place place) { return DoDequeue(place); }

    bool Enqueue(Ptr<QueueDiscItem> item) override { return DoEnqueue(GetContainer().end(), item); }
    Ptr<QueueDiscItem> Dequeue() override { return DoDequeue(GetContainer().begin()); }
    Ptr<QueueDiscItem> Remove() override { return DoRemove(GetContainer().begin()); }
    Ptr<const QueueDiscItem> Peek() const override { return DoPeek(GetContainer().begin()); }
};

class SojournQueueDisc : public QueueDisc {
public:
    static TypeId GetTypeId() {
        using Self = SojournQueueDisc;
        static TypeId tid = TypeId("ns3::SojournQueueDisc")
            .SetParent<QueueDisc>().SetGroupName("TrafficControl").AddConstructor<Self>()
            .AddAttribute("Discipline", "Name and parameters of the discipline.",
                          StringValue("fq_codel(variant=linux)"),
                          MakeStringAccessor(&Self::text), MakeStringChecker())
            .AddAttribute("Rate", "Rate of the link; 0 for the DataRate of the device.",
                          DataRateValue(DataRate(0)),
                          MakeDataRateAccessor(&Self::rate), MakeDataRateChecker())
            .AddAttribute("Perturbation", "Salt of the hash of flows.", UintegerValue(0),
                          MakeUintegerAccessor(&Self::perturbation), MakeUintegerChecker<uint32_t>());
        return tid;
    }

    SojournQueueDisc() : QueueDisc(QueueDiscSizePolicy::SINGLE_INTERNAL_QUEUE, QueueSizeUnit::PACKETS) {}

    // The discipline has one random stream.
    int64_t AssignStreams(int64_t stream) {
        random->SetStream(stream);
        return 1;
    }

private:
    bool CheckConfig() override {
        if (GetNInternalQueues() == 0) AddInternalQueue(CreateObject<SojournStore>());
        return GetNQueueDiscClasses() == 0 && GetNPacketFilters() == 0;
    }

    void InitializeParams() override {
        DataRateValue link(rate);
        if (rate.GetBitRate() == 0)
            GetNetDeviceQueueInterface()->GetObject<NetDevice>()->GetAttributeFailSafe("DataRate", link);
        try {
            qdisc.emplace(text, link.Get().GetBitRate(), random->GetInteger(0, UINT32_MAX));
        } catch (const sojourn::Error &error) {
            NS_FATAL_ERROR("Discipline \"" << text << "\": " << error.what());
        }
    }

    bool DoEnqueue(Ptr<QueueDiscItem> item) override {
        uint8_t tos = 0;
        item->GetUint8Value(QueueItem::IP_DSFIELD, tos);
        sojourn::Packet packet;
        packet.len = item->GetSize();
        packet.hash = item->Hash(perturbation);
        packet.traffic_class = tos >> 2;
        packet.ecn = tos & 3;
        packet.cookie = arrived++;
        qdisc->enqueue(Simulator::Now().GetNanoSeconds(), packet);
        if (TakeDropped(packet.cookie)) {
            DropBeforeEnqueue(item, "sojourn");
            return false;
        }
        places.emplace(packet.cookie, Store()->Insert(item));
        return true;
    }

    Ptr<QueueDiscItem> DoDequeue() override {
        const auto packet = qdisc->dequeue(Simulator::Now().GetNanoSeconds());
        TakeDropped(arrived);
        if (packet) {
            Ptr<QueueDiscItem> item = Take(packet->cookie);
            uint8_t tos = 0;
            item->GetUint8Value(QueueItem::IP_DSFIELD, tos);
            if (packet->ecn == 3 && (tos & 3) != 3) Mark(item, "sojourn");
            return item;
        }
        const uint64_t ready = qdisc->ready_at(); // a shaper holds the packets back
        if (ready != SJ_NEVER && !next.IsRunning())
            next = Simulator::Schedule(NanoSeconds(ready) - Simulator::Now(), &QueueDisc::Run, this);
        return nullptr;
    }

    // Takes the dropped packets from the store. Returns true if the arriving packet is among them.
    bool TakeDropped(uint64_t arriving) {
        bool isAmong = false;
        while (auto dropped = qdisc->next_dropped()) {
            if (dropped->cookie == arriving) isAmong = true;
            else DropAfterDequeue(Take(dropped->cookie), "sojourn");
        }
        return isAmong;
    }

    Ptr<QueueDiscItem> Take(uint64_t cookie) {
        return Store()->Take(places.extract(cookie).mapped());
    }

    Ptr<SojournStore> Store() { return StaticCast<SojournStore>(GetInternalQueue(0)); }

    std::string text;
    DataRate rate;
    uint32_t perturbation = 0;
    Ptr<UniformRandomVariable> random = CreateObject<UniformRandomVariable>();
    std::optional<sojourn::Qdisc> qdisc;
    uint64_t arrived = 0; // packets so far: the next cookie
    std::unordered_map<uint64_t, SojournStore::Place> places;
    EventId next;
};

NS_OBJECT_ENSURE_REGISTERED(SojournQueueDisc);

} // namespace ns3

#endif
