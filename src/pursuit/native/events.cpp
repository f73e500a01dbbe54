// Events in recordings: the templates as Python gives them, and the cache of their products.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <vector>
#include "kernels.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Unlocked = nb::call_guard<nb::gil_scoped_release>;

template <class T, int N> using In = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, int N> using Out = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T> using Samples = nb::ndarray<const T, nb::ndim<3>, nb::device::cpu>;  // channels x rows x columns

void require(bool condition, const char *what) {
    if (!condition) throw std::invalid_argument(what);
}

template <class T> const TranslateKernels<T> &kernels() {
    if constexpr (sizeof(T) == 8) return level().float64.translates;
    else return level().float32.translates;
}

// Rows of products of templates, made when they are asked for; those unused for longest go where they take too much memory.
template <class T> class ProductCache : public Products<T> {
    struct Row {
        std::unique_ptr<T[]> values;
        int holders = 0;
        std::list<int>::iterator place;
    };
    const Templates<T> &A;
    const size_t limit;
    std::vector<Row> rows;
    std::list<int> recent;  // the last used first
    std::mutex lock;
    size_t bytes = 0;

    size_t row_bytes(int k) const { return size_t(A.neighbour_count(k) * A.products_of_pair()) * sizeof(T); }

    void shrink() {
        for (auto k = recent.end(); bytes > limit && k != recent.begin();) {
            --k;
            if (rows[*k].holders) continue;
            bytes -= row_bytes(*k);
            rows[*k].values.reset();
            k = recent.erase(k);
        }
    }

  public:
    size_t most_bytes = 0, made = 0;

    ProductCache(const Templates<T> &A, size_t limit) : A(A), limit(limit), rows(A.count) {}

    const T *hold(int k) override {
        Row &row = rows[k];
        {
            std::lock_guard<std::mutex> hold(lock);
            if (row.values) {
                ++row.holders;
                recent.splice(recent.begin(), recent, row.place);
                return row.values.get();
            }
        }
        std::unique_ptr<T[]> values(new T[row_bytes(k) / sizeof(T)]);
        kernels<T>().products(A, k, values.get());
        std::lock_guard<std::mutex> hold(lock);
        if (!row.values) {  // no other thread has made it in the meantime
            row.values = std::move(values);
            recent.push_front(k);
            row.place = recent.begin();
            bytes += row_bytes(k);
            ++made;
        }
        ++row.holders;
        shrink();
        most_bytes = std::max(most_bytes, bytes);
        return row.values.get();
    }

    void release(int k) override {
        std::lock_guard<std::mutex> hold(lock);
        --rows[k].holders;
    }
};

// What kernels read, and the arrays of Python that it points to.
template <class T> struct TemplateSet : Templates<T> {
    In<int32_t, 1> part_starts_, part_channels_, part_rows_;
    In<T, 2> samples_;
    std::optional<In<int32_t, 1>> factor_starts_;
    std::optional<In<T, 1>> mixing_;
    std::optional<In<T, 2>> filters_;
    In<double, 1> squares_;
    In<int64_t, 1> neighbour_starts_;
    In<int32_t, 1> neighbours_;
    std::vector<int64_t> mixing_offsets;
    std::unique_ptr<ProductCache<T>> cache;

    TemplateSet(std::pair<int, int> shape, In<int32_t, 1> part_starts, In<int32_t, 1> part_channels,
                In<int32_t, 1> part_rows, In<T, 2> samples, std::optional<In<int32_t, 1>> factor_starts,
                std::optional<In<T, 1>> mixing, std::optional<In<T, 2>> filters, In<double, 1> squares,
                In<int64_t, 1> neighbour_starts, In<int32_t, 1> neighbours, size_t memory)
        : part_starts_(part_starts), part_channels_(part_channels), part_rows_(part_rows), samples_(samples),
          factor_starts_(factor_starts), mixing_(mixing), filters_(filters), squares_(squares),
          neighbour_starts_(neighbour_starts), neighbours_(neighbours) {
        const int count = int(squares.shape(0)), parts = int(samples.shape(0));
        static_cast<Templates<T> &>(*this) = {count,
                                              shape.first,
                                              shape.second,
                                              int(samples.shape(1)),
                                              part_starts.data(),
                                              part_channels.data(),
                                              part_rows.data(),
                                              samples.data(),
                                              nullptr,
                                              nullptr,
                                              nullptr,
                                              nullptr,
                                              squares.data(),
                                              neighbour_starts.data(),
                                              neighbours.data()};
        require(count > 0 && this->width > 0 && this->height > 0, "there are no templates");
        check_starts(part_starts, count, parts);
        check_starts(neighbour_starts, count, int64_t(neighbours.shape(0)));
        check_below(part_channels, parts, this->channels);
        check_below(part_rows, parts, this->height);
        check_below(neighbours, neighbours.shape(0), count);
        if (factor_starts) set_factors();
        cache = std::make_unique<ProductCache<T>>(*this, memory);
    }

    void set_factors() {
        require(mixing_ && filters_ && int(filters_->shape(1)) == this->width, "filters do not fit the templates");
        check_starts(*factor_starts_, this->count, int64_t(filters_->shape(0)));
        int64_t offset = 0;
        const int32_t *starts = factor_starts_->data();
        for (int k = 0; k < this->count; ++k) {
            mixing_offsets.push_back(offset);
            offset += int64_t(starts[k + 1] - starts[k]) * this->parts(k);
        }
        require(offset == int64_t(mixing_->shape(0)), "mixing does not fit the templates");
        this->factor_starts = starts;
        this->mixing_starts = mixing_offsets.data();
        this->mixing = mixing_->data();
        this->filters = filters_->data();
    }

    template <class I> static void check_starts(const In<I, 1> &starts, int count, int64_t end) {
        require(int(starts.shape(0)) == count + 1 && starts.data()[0] == 0 && int64_t(starts.data()[count]) == end &&
                    std::is_sorted(starts.data(), starts.data() + count + 1),
                "starts must increase");
    }
    static void check_below(const In<int32_t, 1> &indices, size_t count, int end) {
        require(indices.shape(0) == count &&
                    std::all_of(indices.data(), indices.data() + count, [end](int32_t i) { return i >= 0 && i < end; }),
                "an index is out of range");
    }

    Signal<T> signal(const Samples<T> &y) const {
        require(int(y.shape(0)) == this->channels && int(y.shape(1)) >= this->height && int(y.shape(2)) >= this->width,
                "the signal does not fit the templates");
        return {y.data(), int64_t(y.shape(1)), int64_t(y.shape(2)), y.stride(0), y.stride(1), y.stride(2)};
    }
    void correlate(const Samples<T> &y, const Out<T, 3> &out) const {
        const Signal<T> signal = this->signal(y);
        const int64_t columns = (signal.columns - this->width + 128) / 128 * 128;
        require(int(out.shape(0)) == this->count && int64_t(out.shape(1)) == signal.rows - this->height + 1 &&
                    int64_t(out.shape(2)) == columns,
                "out does not fit");
        kernels<T>().correlate(*this, signal, out.data());
    }
};

// One search for events, and its answer as columns.
template <class T> class Finder {
    std::unique_ptr<EventSearch<T>> search;
    In<int32_t, 1> stop;

  public:
    bool ended = false;

    Finder(TemplateSet<T> &A, const EventRules &rules, const Samples<T> &y, const In<int32_t, 1> &stop,
           const In<double, 2> &known)
        : stop(stop) {
        const Signal<T> signal = A.signal(y);
        require(stop.shape(0) == 1 && known.shape(1) == 5, "stop or known do not fit");
        std::vector<Event> events;
        for (size_t i = 0; i < known.shape(0); ++i) {
            const double *e = known.data() + 5 * i;
            const Event event = {int64_t(e[0]), int64_t(e[1]), int32_t(e[2]), e[3], e[4]};
            require(event.row >= 0 && event.row <= signal.rows - A.height && event.column >= 0 &&
                        event.column <= signal.columns - A.width && event.kernel >= 0 && event.kernel < A.count,
                    "no such event");
            events.push_back(event);
        }
        require(events.empty() || rules.method != EventMethod::mp, "matching pursuit needs no known events");
        EventRules with_stop = rules;
        with_stop.stop = stop.data();
        nb::gil_scoped_release release;
        search.reset(kernels<T>().search(A, with_stop, signal, *A.cache));
        if (!events.empty()) search->start(events.data(), int64_t(events.size()));
        ended = search->run();
    }
    int64_t count() const { return search->count(); }
    void copy(const Out<double, 2> &out) const {  // row, column, template, weight, score
        require(int64_t(out.shape(0)) == count() && out.shape(1) == 5, "out does not fit");
        std::vector<Event> events(static_cast<size_t>(count()));
        search->copy(events.data());
        double *to = out.data();
        for (const Event &e : events)
            for (double value : {double(e.row), double(e.column), double(e.kernel), e.weight, e.score}) *to++ = value;
    }
};

template <class T> void bind(nb::module_ m) {
    using Set = TemplateSet<T>;
    nb::class_<Set>(m, "Templates")
        .def(
            "__init__",
            [](Set *self, int channels, int height, In<int32_t, 1> part_starts, In<int32_t, 1> part_channels,
               In<int32_t, 1> part_rows, In<T, 2> samples, std::optional<In<int32_t, 1>> factor_starts,
               std::optional<In<T, 1>> mixing, std::optional<In<T, 2>> filters, In<double, 1> squares,
               In<int64_t, 1> neighbour_starts, In<int32_t, 1> neighbours, size_t memory) {
                new (self) Set({channels, height}, part_starts, part_channels, part_rows, samples, factor_starts,
                               mixing, filters, squares, neighbour_starts, neighbours, memory);
            },
            "channels"_a, "height"_a, "part_starts"_a, "part_channels"_a, "part_rows"_a, "samples"_a,
            "factor_starts"_a.none(), "mixing"_a.none(), "filters"_a.none(), "squares"_a, "neighbour_starts"_a,
            "neighbours"_a, "memory"_a)
        .def("correlate", &Set::correlate, Unlocked(), "y"_a, "out"_a.noconvert())
        .def_prop_ro("most_bytes", [](const Set &A) { return A.cache->most_bytes; })
        .def_prop_ro("rows_made", [](const Set &A) { return A.cache->made; });
    nb::class_<Finder<T>>(m, "Finder")
        .def(nb::init<Set &, const EventRules &, const Samples<T> &, const In<int32_t, 1> &, const In<double, 2> &>(),
             "templates"_a, "rules"_a, "y"_a, "stop"_a, "known"_a, nb::keep_alive<1, 2>())
        .def_ro("ended", &Finder<T>::ended)
        .def_prop_ro("count", &Finder<T>::count)
        .def("copy", &Finder<T>::copy, "out"_a.noconvert());
}

}  // namespace

void bind_events(nb::module_ float64, nb::module_ float32) {
    nb::enum_<EventMethod>(float64, "EventMethod")
        .value("mp", EventMethod::mp)
        .value("omp", EventMethod::omp)
        .value("nnomp", EventMethod::nnomp)
        .value("lasso", EventMethod::lasso);
    nb::class_<EventRules>(float64, "EventRules")
        .def(nb::init<>())
        .def_rw("method", &EventRules::method)
        .def_rw("positive", &EventRules::positive)
        .def_rw("threshold", &EventRules::threshold)
        .def_rw("penalty", &EventRules::penalty)
        .def_rw("prior", &EventRules::prior)
        .def_rw("least", &EventRules::least)
        .def_rw("most", &EventRules::most)
        .def_rw("limit", &EventRules::limit)
        .def_rw("turns", &EventRules::turns)
        .def_rw("refractory", &EventRules::refractory)
        .def_rw("row_step", &EventRules::row_step)
        .def_rw("step", &EventRules::step);
    bind<double>(float64);
    bind<float>(float32);
}
