// The Python module: arrays in, kernels of the level that this processor has, the interpreter's lock released.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include "kernels.h"
#include "processor.h"

namespace nb = nanobind;
using namespace nb::literals;
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

// LEVELS is LEVEL(v2) LEVEL(v3) ..., those that were compiled, in increasing order.
#define LEVEL(name) extern const Levels name;
namespace levels {
LEVELS
}
#undef LEVEL
#define LEVEL(name) &levels::name,
static const Levels *const compiled[] = {LEVELS};

// The highest level that this processor has, or that the environment asks to keep to, for tests: PURSUIT_LEVEL=v2.
static const Levels &choose_level() {
    const auto number = [](const char *name) { return name && name[0] == 'v' ? name[1] - '0' : 0; };
    const int has = processor_level(), asked = number(std::getenv("PURSUIT_LEVEL"));
    const Levels *chosen = nullptr;
    for (const Levels *each : compiled)
        if (number(each->name) <= has && (!chosen || asked == 0 || number(each->name) <= asked)) chosen = each;
    if (!chosen)
        throw std::runtime_error("this processor is older than all for which the kernels of pursuit were compiled.");
    return *chosen;
}

const Levels &level() {
    static const Levels &chosen = choose_level();
    return chosen;
}
template <class T> const Level<T> &kernels() {
    if constexpr (sizeof(T) == 8) return level().float64;
    else return level().float32;
}

template <class T, int N> using In = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, int N> using Out = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T> using Strided = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

Kernel::~Kernel() = default;

void bind_events(nb::module_ float64, nb::module_ float32);  // events.cpp

static void require(bool condition, const char *what) {
    if (!condition) throw std::invalid_argument(what);
}

void check_interrupt(const int32_t *stop) {
    using Clock = std::chrono::steady_clock;
    thread_local Clock::time_point next{};
    const bool stopped = __atomic_load_n(stop, __ATOMIC_RELAXED) != 0;
    if (!stopped && Clock::now() < next) return;
    next = Clock::now() + std::chrono::milliseconds(20);
    nb::gil_scoped_acquire hold;
    if (stopped) PyErr_SetNone(PyExc_KeyboardInterrupt);
    else if (PyErr_CheckSignals() == 0) return;
    throw nb::python_error();
}

// What kernels read, and the arrays of Python that it points to, which live as long as it does.
template <class T> struct Atoms : Dictionary<T> {
    std::tuple<Strided<T>, In<T, 1>, std::optional<In<T, 2>>> arrays;

    // Of a single entry, the stride may be anything.
    Atoms(Strided<T> atoms, In<T, 1> norms, std::optional<In<T, 2>> gram)
        : Dictionary<T>{int(atoms.shape(1)),
                        int(atoms.shape(0)),
                        atoms.data(),
                        atoms.stride(0),
                        atoms.shape(1) == 1 ? 1 : atoms.stride(1),
                        norms.data(),
                        gram ? gram->data() : nullptr},
          arrays(atoms, norms, gram) {
        const size_t n = atoms.shape(0);
        require(std::max(n, atoms.shape(1)) < size_t(std::numeric_limits<int>::max()), "too many atoms");
        require(norms.shape(0) == n && (!gram || (gram->shape(0) == n && gram->shape(1) == n)),
                "arrays do not fit the atoms");
    }
};

template <class T> struct Signals : Tile<T> {
    std::tuple<In<T, 2>, std::optional<In<T, 2>>, In<int64_t, 1>, In<T, 1>, In<T, 1>, Out<int32_t, 2>, Out<T, 2>,
               Out<int64_t, 1>, In<int32_t, 1>>
        arrays;

    Signals(In<T, 2> y, std::optional<In<T, 2>> weights, In<int64_t, 1> limits, In<T, 1> tols, In<T, 1> penalties,
            Out<int32_t, 2> atoms, Out<T, 2> x, Out<int64_t, 1> counts, In<int32_t, 1> stop)
        : Tile<T>{int64_t(y.shape(0)),
                  int(x.shape(1)),
                  y.data(),
                  weights ? weights->data() : nullptr,
                  limits.data(),
                  tols.data(),
                  penalties.data(),
                  atoms.data(),
                  x.data(),
                  counts.data(),
                  stop.data()},
          arrays(y, weights, limits, tols, penalties, atoms, x, counts, stop) {
        const size_t n = y.shape(0);
        require(!weights || (weights->shape(0) == n && weights->shape(1) == y.shape(1)), "weights do not fit y");
        require(limits.shape(0) == n && tols.shape(0) == n && penalties.shape(0) == n, "limits do not fit y");
        require(counts.shape(0) == n && stop.shape(0) == 1, "codes do not fit y");
        require(atoms.shape(0) == n && x.shape(0) == n && x.shape(1) == atoms.shape(1), "codes do not fit y");
        for (size_t i = 0; i < n; ++i)
            require(limits.data()[i] >= 0 && limits.data()[i] <= this->width, "codes have no room for the limits");
    }
    int64_t unsolved() const { return std::count(this->counts, this->counts + this->count, UNSOLVED); }
    void check(const Dictionary<T> &D) const {
        require(int(std::get<0>(arrays).shape(1)) == D.d, "signals do not fit the atoms");
    }
};

template <class T> struct FastKernel {
    Atoms<T> atoms;
    std::unique_ptr<FastPursuits<T>> pursuits;

    FastKernel(const Atoms<T> &atoms, Method method, Search search) : atoms(atoms) {
        require(atoms.gram && atoms.entry_stride == 1, "a Gram matrix and contiguous atoms are needed");
        require(method == Method::omp || (method == Method::ols && search == Search::float32),
                "OMP searches in 16 bits or float32, OLS in float32");
        require(search != Search::int16 || atoms.d <= 1 << 16, "signals are too long for 16 bits");
        nb::gil_scoped_release release;
        pursuits.reset(kernels<T>().fast(atoms, method, search));
    }
    void solve(const Signals<T> &signals) const {
        signals.check(atoms);
        pursuits->solve(signals);
    }
};

template <class T>
void one_by_one(const Atoms<T> &atoms, Method method, const Signals<T> &signals, const In<T, 2> &products) {
    signals.check(atoms);
    require(atoms.gram && int64_t(products.shape(0)) == signals.unsolved() && int(products.shape(1)) == atoms.n,
            "products do not fit");
    kernels<T>().one_by_one(atoms, method, signals, products.data());
}

template <class T> struct DirectKernel {
    Atoms<T> atoms;
    Signals<T> signals;
    In<T, 2> norms;
    std::unique_ptr<DirectPursuits<T>> pursuits;
    size_t asked = 0;

    DirectKernel(const Atoms<T> &atoms, Method method, const Signals<T> &signals, In<T, 2> norms)
        : atoms(atoms), signals(signals), norms(norms) {
        signals.check(atoms);
        const bool own = int64_t(norms.shape(0)) == signals.count;
        require((own || norms.shape(0) == 1) && int(norms.shape(1)) == atoms.n, "norms do not fit");
        pursuits.reset(kernels<T>().direct(atoms, method, signals, norms.data(), own ? atoms.n : 0));
    }
    size_t vectors(const Out<T, 2> &out) {
        require(int64_t(out.shape(0)) >= 2 * signals.unsolved() && int(out.shape(1)) == atoms.d, "out does not fit");
        check_interrupt(signals.stop);
        return asked = size_t(pursuits->vectors(out.data()));
    }
    void advance(const Out<T, 2> &products) {
        require(products.shape(0) == asked && int(products.shape(1)) == atoms.n, "products do not fit");
        pursuits->advance(products.data());
    }
};

// The 8-bit copy of a matrix. One call at a time: calls share memory to work in, and what they copy of the matrix.
template <class T> class ScreenKernel {
    Atoms<T> atoms;
    std::unique_ptr<Screening<T>> screen;
    std::mutex lock;
    using Vector = In<double, 1>;
    using Which = In<int64_t, 1>;

    void check(const Vector &g, const int64_t *which, int64_t count, const Out<double, 1> &u,
               const Out<double, 1> &v) const {
        require(int(g.shape(0)) == atoms.d && int64_t(u.shape(0)) == count && int64_t(v.shape(0)) == count,
                "arrays do not fit");
        for (int64_t k = 0; which && k < count; ++k) require(which[k] >= 0 && which[k] < atoms.n, "no such column");
    }

  public:
    ScreenKernel(const Atoms<T> &atoms, int threads) : atoms(atoms) {
        nb::gil_scoped_release release;
        screen.reset(kernels<T>().screen(atoms, threads));
    }
    bool intervals(const Vector &g, const std::optional<Which> &which, bool is_signed, int threads,
                   const Out<double, 1> &lower, const Out<double, 1> &upper) {
        const int64_t count = which ? int64_t(which->shape(0)) : atoms.n, *columns = which ? which->data() : nullptr;
        check(g, columns, count, lower, upper);
        std::lock_guard<std::mutex> hold(lock);
        return screen->intervals(g.data(), columns, count, is_signed, threads, lower.data(), upper.data());
    }
    void products(const Vector &g, const Which &which, const Out<double, 1> &value, const Out<double, 1> &size) {
        check(g, which.data(), int64_t(which.shape(0)), value, size);
        std::lock_guard<std::mutex> hold(lock);
        screen->products(g.data(), which.data(), int64_t(which.shape(0)), value.data(), size.data());
    }
    void alone(Method method, const Signals<T> &signals, int threads) {
        signals.check(atoms);
        require(!signals.weights && (method == Method::omp || method == Method::ols),
                "OMP and OLS without weights only");
        std::lock_guard<std::mutex> hold(lock);
        screen->solve_alone(method, signals, threads);
    }
};

template <class T> void squared_norms(const Strided<T> &atoms, const Out<T, 1> &out, int threads) {
    require(out.shape(0) == atoms.shape(0), "out does not fit the atoms");
    require(std::max(atoms.shape(0), atoms.shape(1)) < size_t(std::numeric_limits<int>::max()), "too many atoms");
    const Dictionary<T> D{
        int(atoms.shape(1)), int(atoms.shape(0)), atoms.data(), atoms.stride(0), atoms.stride(1), nullptr, nullptr};
    constexpr int64_t piece = 2048;
    in_parallel(threads, int((D.n + piece - 1) / piece), [&](int k) {
        kernels<T>().squared_norms(D, k * piece, std::min<int64_t>((k + 1) * piece, D.n), out.data());
    });
}

#include "greedy_module.h"

// Arrays that are written to are never converted: a copy would be written to.
template <class T> void bind(nb::module_ m) {
    using nb::init;
    m.def("squared_norms", &squared_norms<T>, Unlocked(), "atoms"_a, "out"_a.noconvert(), "threads"_a);
    nb::class_<Atoms<T>>(m, "Atoms")
        .def(init<Strided<T>, In<T, 1>, std::optional<In<T, 2>>>(), "atoms"_a, "norms"_a, "gram"_a.none() = nb::none());
    nb::class_<Signals<T>>(m, "Signals")
        .def(init<In<T, 2>, std::optional<In<T, 2>>, In<int64_t, 1>, In<T, 1>, In<T, 1>, Out<int32_t, 2>, Out<T, 2>,
                  Out<int64_t, 1>, In<int32_t, 1>>(),
             "y"_a, "weights"_a.none(), "limits"_a, "tols"_a, "penalties"_a, "atoms"_a.noconvert(), "x"_a.noconvert(),
             "counts"_a.noconvert(), "stop"_a.noconvert());
    nb::class_<FastKernel<T>>(m, "Fast")
        .def(init<const Atoms<T> &, Method, Search>())
        .def("solve", &FastKernel<T>::solve, Unlocked());
    m.def("one_by_one", &one_by_one<T>, Unlocked());
    nb::class_<DirectKernel<T>>(m, "Direct")
        .def(init<const Atoms<T> &, Method, const Signals<T> &, In<T, 2>>())
        .def("vectors", &DirectKernel<T>::vectors, Unlocked(), "out"_a.noconvert())
        .def("advance", &DirectKernel<T>::advance, Unlocked(), "products"_a.noconvert());
    nb::class_<ScreenKernel<T>>(m, "Screen")
        .def(init<const Atoms<T> &, int>())
        .def("intervals", &ScreenKernel<T>::intervals, Unlocked(), "g"_a, "which"_a.none(), "signed"_a, "threads"_a,
             "lower"_a.noconvert(), "upper"_a.noconvert())
        .def("products", &ScreenKernel<T>::products, Unlocked(), "g"_a, "which"_a, "value"_a.noconvert(),
             "size"_a.noconvert())
        .def("alone", &ScreenKernel<T>::alone, Unlocked());
    bind_greedy<T>(m);
}

static void check_indices(const int32_t *indices, size_t count, size_t end) {
    require(std::all_of(indices, indices + count, [end](int32_t i) { return i >= 0 && size_t(i) < end; }),
            "an index is out of range");
}

static void row_products(const In<double, 2> &A, const In<double, 2> &B, const In<int32_t, 1> &rows,
                         const In<int32_t, 1> &cols, const Out<double, 1> &out) {
    const size_t count = rows.shape(0);
    require(A.shape(1) == B.shape(1) && cols.shape(0) == count && out.shape(0) == count, "arrays do not fit");
    check_indices(rows.data(), count, A.shape(0));
    check_indices(cols.data(), count, B.shape(0));
    level().row_products(A.data(), B.data(), int(A.shape(1)), rows.data(), cols.data(), int64_t(count), out.data());
}

static void lower_gram(const In<int32_t, 1> &pointers, const In<int32_t, 1> &indices, const In<double, 1> &data,
                       const Out<double, 2> &G) {
    const size_t count = indices.shape(0), rows = pointers.shape(0) - 1;
    require(pointers.shape(0) > 0 && count == data.shape(0) && G.shape(0) == G.shape(1), "arrays do not fit");
    require(pointers.data()[0] == 0 && size_t(pointers.data()[rows]) <= count &&
                std::is_sorted(pointers.data(), pointers.data() + rows + 1),
            "pointers must increase");
    check_indices(indices.data(), count, G.shape(0));
    level().lower_gram(pointers.data(), indices.data(), data.data(), int64_t(rows), G.data(), int64_t(G.shape(0)));
}

static void assign(const In<int32_t, 1> &starts, const In<int32_t, 1> &heads, const In<double, 1> &costs,
                   const In<int64_t, 1> &origins, const In<double, 2> &demand, int threads,
                   const Out<double, 1> &loads) {
    const int64_t nodes = int64_t(starts.shape(0)) - 1, edges = int64_t(heads.shape(0));
    require(nodes > 0 && starts.data()[nodes] == edges && int64_t(costs.shape(0)) == edges &&
                int64_t(loads.shape(0)) == edges && int64_t(demand.shape(1)) == nodes &&
                demand.shape(0) == origins.shape(0),
            "arrays do not fit");
    const auto outside = [nodes](int64_t node) { return node < 0 || node >= nodes; };
    require(std::none_of(heads.data(), heads.data() + edges, outside) &&
                std::none_of(origins.data(), origins.data() + origins.shape(0), outside),
            "there is no such node");
    require(starts.data()[0] == 0 && std::is_sorted(starts.data(), starts.data() + nodes + 1), "starts must increase");
    all_or_nothing({starts.data(), heads.data(), nodes, edges}, costs.data(), origins.data(), int64_t(origins.shape(0)),
                   demand.data(), threads, loads.data());
}

// Nodes of the search for a best subset that share H, c, d and M.
struct SubsetKernel : Quadratic {
    using Vector = In<double, 1>;
    std::tuple<In<double, 2>, Vector, Vector, Vector, Vector> arrays;

    SubsetKernel(In<double, 2> H, Vector c, Vector d, Vector M, Vector root, double constant, double noise,
                 bool positive)
        : Quadratic{int(c.shape(0)), H.data(), c.data(), d.data(), M.data(), root.data(), constant, noise, positive},
          arrays(H, c, d, M, root) {
        const size_t p = c.shape(0);
        require(H.shape(0) == p && H.shape(1) == p && d.shape(0) == p && M.shape(0) == p && root.shape(0) == p,
                "arrays do not fit");
    }

    // The bound, the last price, the column to branch on, the rounds.
    std::tuple<double, double, int, int> relax(const In<int8_t, 1> &state, int m, const Out<double, 1> &b, double mu,
                                               double cut, int limit, const Out<double, 2> &out,
                                               const Out<int8_t, 1> &screened) const {
        require(int(state.shape(0)) == p && int(b.shape(0)) == p && int(screened.shape(0)) == p && out.shape(0) == 2 &&
                    int(out.shape(1)) == p && m >= 0,
                "arrays do not fit");
        Relaxation r{m,
                     limit,
                     30,
                     cut,
                     2e-3,
                     mu,
                     state.data(),
                     b.data(),
                     nullptr,
                     nullptr,
                     out.data(),
                     out.data() + p,
                     screened.data(),
                     0,
                     -1,
                     0};
        level().relax_subset(*this, r);
        return {r.bound, r.mu, r.branch, r.rounds};
    }

    // bounds[i] of f where column columns[i / 2] is the largest of all beside M and at least M, positive (even i) or
    // negative (odd i): relaxations that begin at u, with w = c - Qu. Column i of `points` is where it was proved.
    void cones(const In<int32_t, 1> &columns, int m, const Vector &u, const Vector &w, double mu, double cut,
               int threads, const Out<double, 1> &bounds) const {
        require(int(u.shape(0)) == p && int(w.shape(0)) == p && bounds.shape(0) == 2 * columns.shape(0) && m >= 0,
                "arrays do not fit");
        require(
            std::all_of(columns.data(), columns.data() + columns.shape(0), [this](int j) { return j >= 0 && j < p; }),
            "an index is out of range");
        in_parallel(threads, int(columns.shape(0)), [&](int i) {
            const std::unique_ptr<double[]> room(new double[3 * size_t(p)]);
            const std::unique_ptr<int8_t[]> states(new int8_t[2 * size_t(p)]());
            for (int sign = 0; sign < (positive ? 1 : 2); ++sign) {
                const int j = columns.data()[i];
                std::copy(u.data(), u.data() + p, room.get());
                states[j] = 2, room[j] = sign ? -M[j] : M[j];
                Relaxation r{m,
                             25,
                             4,
                             cut,
                             1e-3,
                             mu,
                             states.get(),
                             room.get(),
                             w.data(),
                             u.data(),
                             room.get() + p,
                             room.get() + 2 * p,
                             states.get() + p,
                             0,
                             -1,
                             0};
                level().relax_subset(*this, r);
                bounds.data()[2 * i + sign] = r.bound;
            }
        });
    }
};

NB_MODULE(_core, m) {
    nb::set_leak_warnings(false);  // objects that live until the interpreter ends are no leak
    m.attr("level") = level().name;
    nb::enum_<Method> methods(m, "Method");
    const char *const names[] = {"omp", "mp", "ols", "nnomp", "lasso", "positive_lasso"};  // in the order of kernels.h
    for (int method = 0; method < 6; ++method) methods.value(names[method], Method(method));
    nb::enum_<Search>(m, "Search").value("int16", Search::int16).value("float32", Search::float32);
    bind<double>(m.def_submodule("float64"));
    bind<float>(m.def_submodule("float32"));
    using Array = In<double, 1>;
    nb::class_<SubsetKernel>(m, "Subset")
        .def(nb::init<In<double, 2>, Array, Array, Array, Array, double, double, bool>(), "H"_a, "c"_a, "d"_a, "M"_a,
             "root"_a, "constant"_a, "noise"_a, "positive"_a)
        .def("relax", &SubsetKernel::relax, Unlocked(), "state"_a, "m"_a, "b"_a.noconvert(), "mu"_a, "cut"_a, "limit"_a,
             "out"_a.noconvert(), "screened"_a.noconvert())
        .def("cones", &SubsetKernel::cones, Unlocked(), "columns"_a, "m"_a, "u"_a, "w"_a, "mu"_a, "cut"_a, "threads"_a,
             "bounds"_a.noconvert());
    bind_events(m.attr("float64"), m.attr("float32"));
    m.def("row_products", &row_products, Unlocked(), "A"_a, "B"_a, "rows"_a, "cols"_a, "out"_a.noconvert());
    m.def("lower_gram", &lower_gram, Unlocked(), "pointers"_a, "indices"_a, "data"_a, "G"_a.noconvert());
    m.def("descend", &descend, Unlocked(), "values"_a, "indices"_a.none(), "pointers"_a.none(), "columns"_a, "starts"_a,
          "prices"_a, "ridges"_a, "h"_a, "tol"_a, "most"_a, "v"_a.noconvert(), "b"_a.noconvert(),
          "along"_a.noconvert());
    nb::class_<LassoPathKernel>(m, "LassoPath")
        .def(nb::init<In<double, 2>, In<int64_t, 1>, Array, Array, double>(), "columns"_a, "starts"_a, "prices"_a,
             "y"_a, "l2"_a)
        .def("minimise", &LassoPathKernel::minimise, Unlocked(), "penalty"_a, "tol"_a, "most"_a)
        .def("coefficients", &LassoPathKernel::coefficients, "out"_a.noconvert());
    m.def("all_or_nothing", &assign, Unlocked(), "starts"_a, "heads"_a, "costs"_a, "origins"_a, "demand"_a, "threads"_a,
          "loads"_a.noconvert());
}
