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
#include <vector>
#include "kernels.h"
#include "processor.h"

namespace nb = nanobind;
using namespace nb::literals;
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

// LEVELS is LEVEL(v2) LEVEL(v3) ..., those that were compiled, in increasing order.
#define LEVEL(name) namespace name { extern const Levels level; }
LEVELS
#undef LEVEL
#define LEVEL(name) &name::level,
static const Levels *const compiled[] = {LEVELS};

// The highest level that this processor has, or that the environment asks to keep to, for tests: PURSUIT_LEVEL=v2.
static const Levels &choose_level() {
    const auto number = [](const char *name) { return name && name[0] == 'v' ? name[1] - '0' : 0; };
    const int has = processor_level(), asked = number(std::getenv("PURSUIT_LEVEL"));
    const Levels *chosen = nullptr;
    for (const Levels *each : compiled)
        if (number(each->name) <= has && (!chosen || asked == 0 || number(each->name) <= asked)) chosen = each;
    if (!chosen) throw std::runtime_error("this processor is older than all for which the kernels of pursuit were compiled.");
    return *chosen;
}

static const Levels &levels() { static const Levels &chosen = choose_level(); return chosen; }
template <class T> const Level<T> &kernels() {
    if constexpr (sizeof(T) == 8) return levels().float64;
    else return levels().float32;
}

template <class T, int N> using In = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, int N> using Out = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T> using Strided = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
struct Destroy { template <class Kernel> void operator()(Kernel *kernel) const { kernel->destroy(); } };
template <class Kernel> using Owned = std::unique_ptr<Kernel, Destroy>;

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

// Arrays of Python, which live as long as these do, and the plain structures that kernels read.
template <class T> struct Atoms : Dictionary<T> {
    Strided<T> atoms_array;
    In<T, 1> norms_array;
    std::optional<In<T, 2>> gram_array;

    Atoms(Strided<T> atoms, In<T, 1> norms, std::optional<In<T, 2>> gram)
        : Dictionary<T>{int(atoms.shape(1)), int(atoms.shape(0)), atoms.data(), atoms.stride(0),
                        atoms.shape(1) == 1 ? 1 : atoms.stride(1),  // of a single entry, the stride may be anything
                        norms.data(), gram ? gram->data() : nullptr},
          atoms_array(atoms), norms_array(norms), gram_array(gram) {
        const size_t n = atoms.shape(0);
        require(std::max(n, atoms.shape(1)) < size_t(std::numeric_limits<int>::max()), "too many atoms");
        require(norms.shape(0) == n && (!gram || (gram->shape(0) == n && gram->shape(1) == n)), "arrays do not fit the atoms");
    }
    void check(bool contiguous_with_gram) const {
        require(!contiguous_with_gram || (this->gram && this->entry_stride == 1), "a Gram matrix and contiguous atoms are needed");
    }
};

template <class T> struct Signals : Tile<T> {
    In<T, 2> y_array;
    std::optional<In<T, 2>> weights_array;
    In<int64_t, 1> limits_array;
    In<T, 1> tols_array;
    Out<int32_t, 2> atoms_array;
    Out<T, 2> x_array;
    Out<int64_t, 1> counts_array;
    In<int32_t, 1> stop_array;

    Signals(In<T, 2> y, std::optional<In<T, 2>> weights, In<int64_t, 1> limits, In<T, 1> tols, Out<int32_t, 2> atoms,
            Out<T, 2> x, Out<int64_t, 1> counts, In<int32_t, 1> stop)
        : Tile<T>{int64_t(y.shape(0)), int(x.shape(1)), y.data(), weights ? weights->data() : nullptr, limits.data(),
                  tols.data(), atoms.data(), x.data(), counts.data(), stop.data()},
          y_array(y), weights_array(weights), limits_array(limits), tols_array(tols), atoms_array(atoms), x_array(x),
          counts_array(counts), stop_array(stop) {
        const size_t n = y.shape(0);
        require(!weights || (weights->shape(0) == n && weights->shape(1) == y.shape(1)), "weights do not fit y");
        require(limits.shape(0) == n && tols.shape(0) == n && counts.shape(0) == n && stop.shape(0) == 1, "limits do not fit y");
        require(atoms.shape(0) == n && x.shape(0) == n && x.shape(1) == atoms.shape(1), "codes do not fit y");
        for (size_t i = 0; i < n; ++i)
            require(limits.data()[i] >= 0 && limits.data()[i] <= this->width, "codes have no room for the limits");
    }
    int64_t unsolved() const { return std::count(this->counts, this->counts + this->count, UNSOLVED); }
    void check(const Dictionary<T> &D) const { require(int(y_array.shape(1)) == D.d, "signals do not fit the atoms"); }
};

template <class T> struct FastKernel {
    Atoms<T> atoms;
    Owned<FastPursuits<T>> pursuits;

    FastKernel(const Atoms<T> &atoms, Method method, Search search) : atoms(atoms) {
        atoms.check(true);
        require(method == Method::omp || (method == Method::ols && search == Search::float32), "OMP searches in 16 bits or float32, OLS in float32");
        require(search != Search::int16 || atoms.d <= 1 << 16, "signals are too long for 16 bits");
        nb::gil_scoped_release release;
        pursuits.reset(kernels<T>().fast(atoms, method, search));
    }
    void solve(const Signals<T> &signals) const {
        signals.check(atoms);
        pursuits->solve(signals);
    }
};

template <class T> void careful(const Atoms<T> &atoms, Method method, const Signals<T> &signals, const In<T, 2> &products) {
    signals.check(atoms);
    require(atoms.gram && int64_t(products.shape(0)) == signals.unsolved() && int(products.shape(1)) == atoms.n, "products do not fit");
    kernels<T>().careful(atoms, method, signals, products.data());
}

template <class T> struct DirectKernel {
    Atoms<T> atoms;
    Signals<T> signals;
    In<T, 2> norms;
    Owned<DirectPursuits<T>> pursuits;
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
    const int64_t n, piece;  // columns, and how many of them a thread takes at a time
    Owned<Screening<T>> screen;
    std::mutex lock;
    std::vector<int16_t> p;
    std::vector<double> lower, upper;
    bool refined = false;
    using Vector = In<double, 1>;
    using Which = In<int64_t, 1>;

    template <class Work> void in_pieces(int64_t count, int threads, Work work) {
        const int pieces = int((count + piece - 1) / piece);
        in_parallel(threads, pieces, [&](int k) { work(k, k * piece, std::min((k + 1) * piece, count)); });
    }
    std::optional<double> enclose(const Vector &g, const int64_t *which, int64_t count, bool fine, bool is_signed,
                                  int threads, double *low, double *high) {
        Rounded rounded{};
        require(int(g.shape(0)) == atoms.d, "g does not fit the matrix");
        if (!screen->round(g.data(), p.data(), rounded)) return std::nullopt;
        std::vector<double> best((count + piece - 1) / piece, -std::numeric_limits<double>::infinity());
        in_pieces(count, threads, [&](int k, int64_t start, int64_t stop) {
            best[k] = screen->enclose(rounded, {which, start, stop}, fine, is_signed, low, high);
        });
        return best.empty() ? -std::numeric_limits<double>::infinity() : *std::max_element(best.begin(), best.end());
    }
    void check(const Which &which) const {
        for (size_t k = 0; k < which.shape(0); ++k) require(which.data()[k] >= 0 && which.data()[k] < n, "no such column");
    }

  public:
    ScreenKernel(const Atoms<T> &atoms, int threads)
        : atoms(atoms), n(atoms.n), piece(((1 << 19) / atoms.d / 64 + 1) * 64), screen(kernels<T>().screen(atoms)),
          p((atoms.d + 63) / 64 * 64), lower(n), upper(n) {
        nb::gil_scoped_release release;
        in_pieces(n, threads, [&](int, int64_t start, int64_t stop) { screen->quantise(start, stop); });
        screen->measure();
    }

    // The best column (-1 where rounding leaves a doubt, or more than `most` are compared), its product with g, and how
    // many were compared; None where g is out of range.
    std::optional<std::tuple<int64_t, double, int64_t>> best(const Vector &g, bool is_signed, int64_t most, int threads) {
        std::lock_guard<std::mutex> hold(lock);
        const auto threshold = enclose(g, nullptr, n, false, is_signed, threads, lower.data(), upper.data());
        if (!threshold) return std::nullopt;
        double value = 0;
        int64_t tried = 0, found = screen->winner(g.data(), upper.data(), *threshold, is_signed, most, &value, &tried);
        return std::tuple(found, value, tried);
    }

    // Ends of intervals for some columns (None: all), and the largest lower end; None where g is out of range.
    std::optional<double> intervals(const Vector &g, const std::optional<Which> &which, bool fine, bool is_signed, int threads,
                                    const Out<double, 1> &low, const Out<double, 1> &high) {
        const int64_t count = which ? int64_t(which->shape(0)) : n;
        require(int64_t(low.shape(0)) == count && int64_t(high.shape(0)) == count, "ends do not fit the columns");
        if (which) check(*which);
        std::lock_guard<std::mutex> hold(lock);
        if (fine && !refined) {
            screen->begin_refining();
            in_pieces(n, threads, [&](int, int64_t start, int64_t stop) { screen->refine(start, stop); });
            refined = true;
        }
        return enclose(g, which ? which->data() : nullptr, count, fine, is_signed, threads, low.data(), high.data());
    }

    // <a, g> and <|a|, |g|> for some columns a.
    void products(const Vector &g, const Which &which, const Out<double, 1> &value, const Out<double, 1> &size) {
        require(int(g.shape(0)) == atoms.d && value.shape(0) == which.shape(0) && size.shape(0) == which.shape(0), "arrays do not fit");
        check(which);
        std::lock_guard<std::mutex> hold(lock);
        screen->products(g.data(), {which.data(), 0, int64_t(which.shape(0))}, value.data(), size.data());
    }

    // OMP or OLS of the signals that are not solved, one after the other.
    void alone(Method method, const Signals<T> &signals, int threads) {
        signals.check(atoms);
        require(!signals.weights && (method == Method::omp || method == Method::ols), "OMP and OLS without weights only");
        std::lock_guard<std::mutex> hold(lock);
        screen->solve_alone(method, signals, threads);
    }
};

template <class T> void squared_norms(const Strided<T> &atoms, const Out<T, 1> &out, int threads) {
    require(out.shape(0) == atoms.shape(0), "out does not fit the atoms");
    const Dictionary<T> D{int(atoms.shape(1)), int(atoms.shape(0)), atoms.data(), atoms.stride(0), atoms.stride(1), nullptr, nullptr};
    constexpr int64_t piece = 512;
    in_parallel(threads, int((D.n + piece - 1) / piece), [&](int k) {
        kernels<T>().squared_norms(D, k * piece, std::min<int64_t>((k + 1) * piece, D.n), out.data());
    });
}

// Arrays that are written to are never converted: a copy would be written to.
template <class T> void bind(nb::module_ m) {
    using nb::init;
    m.def("squared_norms", &squared_norms<T>, Unlocked(), "atoms"_a, "out"_a.noconvert(), "threads"_a);
    nb::class_<Atoms<T>>(m, "Atoms")
        .def(init<Strided<T>, In<T, 1>, std::optional<In<T, 2>>>(), "atoms"_a, "norms"_a, "gram"_a.none() = nb::none());
    nb::class_<Signals<T>>(m, "Signals")
        .def(init<In<T, 2>, std::optional<In<T, 2>>, In<int64_t, 1>, In<T, 1>, Out<int32_t, 2>, Out<T, 2>, Out<int64_t, 1>,
                  In<int32_t, 1>>(),
             "y"_a, "weights"_a.none(), "limits"_a, "tols"_a, "atoms"_a.noconvert(), "x"_a.noconvert(),
             "counts"_a.noconvert(), "stop"_a.noconvert());
    nb::class_<FastKernel<T>>(m, "Fast")
        .def(init<const Atoms<T> &, Method, Search>())
        .def("solve", &FastKernel<T>::solve, Unlocked());
    m.def("careful", &careful<T>, Unlocked());
    nb::class_<DirectKernel<T>>(m, "Direct")
        .def(init<const Atoms<T> &, Method, const Signals<T> &, In<T, 2>>())
        .def("vectors", &DirectKernel<T>::vectors, Unlocked(), "out"_a.noconvert())
        .def("advance", &DirectKernel<T>::advance, Unlocked(), "products"_a.noconvert());
    nb::class_<ScreenKernel<T>>(m, "Screen")
        .def(init<const Atoms<T> &, int>())
        .def("best", &ScreenKernel<T>::best, Unlocked())
        .def("intervals", &ScreenKernel<T>::intervals, Unlocked(), "g"_a, "which"_a.none(), "fine"_a, "signed"_a,
             "threads"_a, "lower"_a.noconvert(), "upper"_a.noconvert())
        .def("products", &ScreenKernel<T>::products, Unlocked(), "g"_a, "which"_a, "value"_a.noconvert(), "size"_a.noconvert())
        .def("alone", &ScreenKernel<T>::alone, Unlocked());
}

static void row_products(const In<double, 2> &A, const In<double, 2> &B, const In<int32_t, 1> &rows, const In<int32_t, 1> &cols,
                         const Out<double, 1> &out) {
    require(A.shape(1) == B.shape(1) && rows.shape(0) == cols.shape(0) && out.shape(0) == rows.shape(0), "arrays do not fit");
    levels().row_products(A.data(), B.data(), int(A.shape(1)), rows.data(), cols.data(), int64_t(rows.shape(0)), out.data());
}

static void lower_gram(const In<int32_t, 1> &pointers, const In<int32_t, 1> &indices, const In<double, 1> &data, const Out<double, 2> &G) {
    require(pointers.shape(0) > 0 && indices.shape(0) == data.shape(0) && G.shape(0) == G.shape(1), "arrays do not fit");
    levels().lower_gram(pointers.data(), indices.data(), data.data(), int64_t(pointers.shape(0)) - 1, G.data(), int64_t(G.shape(0)));
}

NB_MODULE(_core, m) {
    nb::set_leak_warnings(false);  // objects that live until the interpreter ends are no leak
    m.attr("level") = levels().name;
    nb::enum_<Method>(m, "Method").value("omp", Method::omp).value("mp", Method::mp).value("ols", Method::ols).value("nnomp", Method::nnomp);
    nb::enum_<Search>(m, "Search").value("int16", Search::int16).value("float32", Search::float32);
    bind<double>(m.def_submodule("float64"));
    bind<float>(m.def_submodule("float32"));
    m.def("row_products", &row_products, Unlocked(), "A"_a, "B"_a, "rows"_a, "cols"_a, "out"_a.noconvert());
    m.def("lower_gram", &lower_gram, Unlocked(), "pointers"_a, "indices"_a, "data"_a, "G"_a.noconvert());
}
