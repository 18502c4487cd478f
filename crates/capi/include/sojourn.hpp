/*
 * sojourn for C++17: owners of disciplines, links and simulations over sojourn.h. Errors are exceptions
 * (sojourn::Error). Objects move, `clone()` copies. Threads: as in sojourn.h.
 */

#ifndef SOJOURN_HPP
#define SOJOURN_HPP

#include "sojourn.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sojourn {

/* Error of a call, with its code. */
class Error : public std::runtime_error {
public:
    explicit Error(int code) : std::runtime_error(sj_strerror(code)), code_(code) {}
    Error(int code, const std::string &text) : std::runtime_error(text), code_(code) {}

    int code() const noexcept { return code_; }

private:
    int code_;
};

namespace detail {

/* Bytes of a message. */
constexpr std::size_t message_bytes = 512;

/* Throws an error for a negative result. */
inline int checked(int result)
{
    if (result < 0) {
        throw Error(result);
    }
    return result;
}

/* The same with a message of the library. */
inline void checked(int result, const char *text)
{
    if (result < 0) {
        throw Error(result, text);
    }
}

struct Free {
    void operator()(sj_qdisc *qdisc) const noexcept { sj_qdisc_free(qdisc); }
    void operator()(sj_link *link) const noexcept { sj_link_free(link); }
    void operator()(sj_sim *sim) const noexcept { sj_sim_free(sim); }
};

/* Bytes of a snapshot. */
using Bytes = std::vector<std::uint8_t>;

/* Calls `save`, one of sj_*_save(), and returns a copy of the bytes. */
template <typename Handle>
Bytes saved(int (*save)(Handle *, const std::uint8_t **, std::size_t *, char *, std::size_t),
            Handle *handle)
{
    char text_of_error[message_bytes];
    const std::uint8_t *start = nullptr;
    std::size_t count = 0;
    checked(save(handle, &start, &count, text_of_error, sizeof text_of_error), text_of_error);
    return {start, start + count};
}

/* Calls `load`, one of sj_*_load(), and returns the handle. */
template <typename Handle>
Handle *loaded(int (*load)(Handle **, const std::uint8_t *, std::size_t, char *, std::size_t),
               const Bytes &snapshot)
{
    char text_of_error[message_bytes];
    Handle *handle = nullptr;
    /* data() of an empty vector can be NULL. */
    const std::uint8_t none = 0;
    const std::uint8_t *start = snapshot.empty() ? &none : snapshot.data();
    checked(load(&handle, start, snapshot.size(), text_of_error, sizeof text_of_error),
            text_of_error);
    return handle;
}

} // namespace detail

/* Packet whose fields are 0, except for its size. */
struct Packet : sj_packet {
    Packet() : sj_packet{} { size = sizeof(sj_packet); }
};

/* Impairments without effect. */
struct Impairments : sj_impairments {
    Impairments() : sj_impairments{} { size = sizeof(sj_impairments); }
};

/* Discipline, for a transmitter of your own. */
class Qdisc {
public:
    Qdisc(const std::string &text, std::uint64_t rate_bps, std::uint64_t seed = 1)
    {
        char text_of_error[detail::message_bytes];
        handle_.reset(sj_qdisc_new(text.c_str(), rate_bps, seed, text_of_error, sizeof text_of_error));
        if (!handle_) {
            throw Error(SJ_INVALID, text_of_error);
        }
    }

    Qdisc clone() const
    {
        Qdisc copy(sj_qdisc_clone(handle_.get()));
        if (!copy.handle_) {
            throw Error(SJ_PANICKED);
        }
        return copy;
    }

    void enqueue(std::uint64_t now, const Packet &packet)
    {
        detail::checked(sj_qdisc_enqueue(handle_.get(), now, &packet));
    }

    std::optional<Packet> dequeue(std::uint64_t now)
    {
        Packet packet;
        return detail::checked(sj_qdisc_dequeue(handle_.get(), now, &packet))
                   ? std::optional<Packet>(packet)
                   : std::nullopt;
    }

    std::optional<Packet> next_dropped()
    {
        Packet packet;
        return detail::checked(sj_qdisc_next_dropped(handle_.get(), &packet))
                   ? std::optional<Packet>(packet)
                   : std::nullopt;
    }

    /* SJ_NEVER if the discipline is empty. */
    std::uint64_t ready_at() const { return sj_qdisc_ready_at(handle_.get()); }

    /* Packets and bytes in the queue. */
    std::pair<std::uint64_t, std::uint64_t> backlog() const
    {
        std::uint64_t packets = 0, bytes = 0;
        detail::checked(sj_qdisc_backlog(handle_.get(), &packets, &bytes));
        return {packets, bytes};
    }

    void reconfigure(const std::string &text)
    {
        char text_of_error[detail::message_bytes];
        int code = sj_qdisc_reconfigure(handle_.get(), text.c_str(), text_of_error,
                                        sizeof text_of_error);
        if (code < 0) {
            throw Error(code, text_of_error);
        }
    }

    /* For functions of sojourn.h, such as bursts. */
    sj_qdisc *get() const noexcept { return handle_.get(); }

private:
    explicit Qdisc(sj_qdisc *handle) : handle_(handle) {}

    std::unique_ptr<sj_qdisc, detail::Free> handle_;
};

/* Link: a discipline, a rate, a one-way delay, and impairments. */
class Link {
public:
    Link(const std::string &text, std::uint64_t rate_bps, std::uint64_t delay_ns,
         std::uint64_t seed = 1, const Impairments &impairments = Impairments())
    {
        char text_of_error[detail::message_bytes];
        handle_.reset(sj_link_new(text.c_str(), rate_bps, delay_ns, seed, &impairments,
                                  text_of_error, sizeof text_of_error));
        if (!handle_) {
            throw Error(SJ_INVALID, text_of_error);
        }
    }

    Link clone() const
    {
        Link copy(sj_link_clone(handle_.get()));
        if (!copy.handle_) {
            throw Error(SJ_PANICKED);
        }
        return copy;
    }

    void push(std::uint64_t now, const Packet &packet)
    {
        detail::checked(sj_link_push(handle_.get(), now, &packet));
    }

    std::optional<Packet> poll(std::uint64_t now)
    {
        Packet packet;
        return detail::checked(sj_link_poll(handle_.get(), now, &packet))
                   ? std::optional<Packet>(packet)
                   : std::nullopt;
    }

    std::optional<Packet> next_undelivered()
    {
        Packet packet;
        return detail::checked(sj_link_next_undelivered(handle_.get(), &packet))
                   ? std::optional<Packet>(packet)
                   : std::nullopt;
    }

    /* SJ_NEVER while no packet is on the link. */
    std::uint64_t next_poll() const { return sj_link_next_poll(handle_.get()); }

    void change(std::uint64_t now, std::uint64_t rate_bps, std::uint64_t delay_ns)
    {
        detail::checked(sj_link_change(handle_.get(), now, rate_bps, delay_ns));
    }

    sj_stats stats() const
    {
        sj_stats stats{};
        stats.size = sizeof stats;
        detail::checked(sj_link_stats(handle_.get(), &stats));
        return stats;
    }

    /* Snapshot, from which load() continues on any machine. It has the packets with their cookies. */
    std::vector<std::uint8_t> save() const { return detail::saved(sj_link_save, handle_.get()); }

    /* Link of a snapshot. Load only snapshots that you wrote. */
    static Link load(const std::vector<std::uint8_t> &snapshot)
    {
        return Link(detail::loaded(sj_link_load, snapshot));
    }

    /* For functions of sojourn.h, such as bursts. */
    sj_link *get() const noexcept { return handle_.get(); }

private:
    explicit Link(sj_link *handle) : handle_(handle) {}

    std::unique_ptr<sj_link, detail::Free> handle_;
};

/* Simulation of a scenario, TOML or JSON. */
class Simulation {
public:
    explicit Simulation(const std::string &scenario)
    {
        char text_of_error[detail::message_bytes];
        handle_.reset(sj_sim_new(scenario.c_str(), text_of_error, sizeof text_of_error));
        if (!handle_) {
            throw Error(SJ_INVALID, text_of_error);
        }
    }

    Simulation clone() const
    {
        Simulation copy(sj_sim_clone(handle_.get()));
        if (!copy.handle_) {
            throw Error(SJ_PANICKED);
        }
        return copy;
    }

    /* Without a time: to the end. */
    void run_until(std::uint64_t until_ns = SJ_NEVER)
    {
        detail::checked(sj_sim_run_until(handle_.get(), until_ns));
    }

    std::uint64_t now() const { return sj_sim_now(handle_.get()); }
    std::uint64_t end() const { return sj_sim_end(handle_.get()); }

    /* Result so far, as JSON. */
    std::string result() const
    {
        char text_of_error[detail::message_bytes];
        const char *json = sj_sim_result(handle_.get(), text_of_error, sizeof text_of_error);
        if (!json) {
            throw Error(SJ_INVALID, text_of_error);
        }
        return json;
    }

    /* Snapshot, from which load() continues on any machine. */
    std::vector<std::uint8_t> save() const { return detail::saved(sj_sim_save, handle_.get()); }

    /* Simulation of a snapshot. Load only snapshots that you wrote. */
    static Simulation load(const std::vector<std::uint8_t> &snapshot)
    {
        return Simulation(detail::loaded(sj_sim_load, snapshot));
    }

    /* For functions of sojourn.h. */
    sj_sim *get() const noexcept { return handle_.get(); }

private:
    explicit Simulation(sj_sim *handle) : handle_(handle) {}

    std::unique_ptr<sj_sim, detail::Free> handle_;
};

} // namespace sojourn

#endif
