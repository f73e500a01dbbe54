// Matching pursuit over all translates of some templates, with local updates.
//
// The correlations of all templates at all positions are computed once. An atom that enters changes them only where it
// overlaps: <r, b> falls by w <a, b>, and <a, b> depends on the two templates and the distance. The largest score is
// found in a tree: of every block of positions (one leaf for each template), of every block, of every BLOCK blocks.
// Positions that may hold no atom have the correlation NaN, which no comparison chooses and no update changes.
#pragma once
#include "correlations.h"
#include "refit.h"

namespace {

constexpr int BLOCK = 64;
constexpr double SETTLED = 1e-10;  // weights are settled where no correlation is larger, relative to the first one

template <class T> class Translates final : public EventSearch<T> {
    struct Place {
        int64_t next, row, column;
        int32_t kernel;
        double weight, score, correlation;  // correlation: <r, a>, kept in double
        double pending;                     // the part of the weight that the correlations of all atoms do not know yet
        bool queued, moved;
        int member = -1;  // its place in the cluster that is being solved
    };
    struct Held {  // the products of one template, held as long as this lives
        Products<T> &products;
        const int k;
        const T *const rows;
        Held(Products<T> &products, int k) : products(products), k(k), rows(products.hold(k)) {}
        ~Held() { products.release(k); }
    };

    const Templates<T> &A;
    const EventRules rules;
    Products<T> &products;
    const int K, height, width;
    const int64_t rows, columns, pitch, row_blocks, blocks;
    Array<T> c, scores, best, top;  // correlations; scores of blocks x templates, of blocks, of BLOCK blocks
    T unit = 0;                     // the largest score at the beginning
    List<Place> events;
    List<int64_t> queue, moved;  // events to be settled; events with a pending change
    double slack = 0;            // events of the Lasso are settled to this accuracy, until no atom enters
    double heaviest = 0;         // the largest |w| ||a|| of any event so far: rounding errors are in proportion
    int64_t living = 0, unused = -1, cells_across = 0;
    LocalProblem local;
    List<int64_t> members;  // the events of the cluster that is being solved
    int most = CLUSTER;     // of them: more where the weights of fewer do not settle
    bool unsettled = false;
    Array<int64_t> cells;  // 1 + the first event of each cell of height x width positions

  public:
    Translates(const Templates<T> &A, const EventRules &rules, const Signal<T> &y, Products<T> &products)
        : A(A), rules(rules), products(products), K(A.count), height(A.height), width(A.width),
          rows(y.rows - A.height + 1), columns(y.columns - A.width + 1), pitch(up_to_multiple(columns, OVERRUN)),
          row_blocks(pitch / BLOCK), blocks(rows * row_blocks), c(size_t(K) * rows * pitch), scores(size_t(blocks) * K),
          best(up_to_multiple(blocks, BLOCK)), top(up_to_multiple(blocks, BLOCK) / BLOCK) {
        correlate_all<T>(
            A, y, [this](int k, int64_t r, int64_t t) { return at(k, r, t); },
            [this](int k, int64_t r, int64_t t, int64_t n) { close(k, r, t, n); });
        refresh(0, blocks - 1);
        for (int64_t q = 0; q < blocks_of_blocks(); ++q) unit = larger(unit, top[q]);
        if (rules.method == EventMethod::mp) return;
        local.free = rules.method == EventMethod::omp;
        local.positive = rules.positive;
        local.penalty = rules.penalty;
        local.dependent = larger(1e-12, 64.0 * double(EPS<T>));
        cells_across = columns / width + 1;
        cells.allocate((rows / height + 1) * cells_across);
    }

    void start(const Event *known, int64_t count) override {
        for (int64_t i = 0; i < count; ++i) {
            const int64_t e = insert(known[i].kernel, known[i].row, known[i].column, known[i].score);
            events[e].weight = known[i].weight;
            enqueue(e);
        }
        settle();
    }

    bool run() override {
        const double relative = larger(rules.method == EventMethod::mp ? 0 : SETTLED, 64.0 * double(EPS<T>));
        const double rounding = double(unit) * relative * relative;
        const bool is_lasso = rules.method == EventMethod::lasso;
        for (int64_t turn = 0; living < rules.limit; ++turn) {
            if (turn == rules.turns || unsettled) return false;
            const T threshold = T(is_lasso ? rules.penalty + 4 * tolerance(0) : larger(rules.threshold, rounding));
            if (turn % 256 == 0) check_interrupt(rules.stop);
            int64_t q = 0;
            for (int64_t i = 1; i < blocks_of_blocks(); ++i) q = top[i] > top[q] ? i : q;
            if (!(top[q] > threshold)) {
                if (slack == 0) return !unsettled;
                slack = 0;
                for (int64_t e = 0; e < events.count; ++e)
                    if (events[e].kernel >= 0) enqueue(e);
                settle();
                continue;
            }
            if (is_lasso) slack = 0.1 * (top[q] - rules.penalty);
            enter(first_with(best + q * BLOCK, top[q]) + q * BLOCK);
        }
        return !unsettled;
    }

    int64_t count() const override { return living; }

    void copy(Event *out) const override {
        for (int64_t e = 0; e < events.count; ++e)
            if (events[e].kernel >= 0)
                *out++ = {events[e].row, events[e].column, events[e].kernel, events[e].weight, events[e].score};
    }

  private:
    T *at(int k, int64_t r, int64_t t) { return c + (int64_t(k) * rows + r) * pitch + t; }
    int64_t blocks_of_blocks() const { return (blocks + BLOCK - 1) / BLOCK; }
    static int64_t first_with(const T *from, T value) {
        int64_t i = 0;
        while (from[i] != value) ++i;
        return i;
    }

    // Positions that hold no atom, once the correlations have been computed, and the scores of the blocks.
    void close(int k, int64_t r, int64_t t, int64_t n) {
        const int64_t end = up_to_multiple(t + n, t + n == columns ? OVERRUN : 1);
        T *row = at(k, r, 0);
        for (int64_t i = t + n; i < end; ++i) row[i] = T(NAN);
        if (rules.step > 1 || rules.row_step > 1)
            for (int64_t i = t; i < t + n; ++i)
                if (i % rules.step || r % rules.row_step) row[i] = T(NAN);
        score_blocks(k, r, t, end - 1);
    }

    // The largest correlation of a block, or the largest magnitude; 0 where there is none above 0.
    T peak(const T *block) const {
        Vec<T> most{};
        for (int i = 0; i < BLOCK; i += LANES<T>) {
            const Vec<T> v = load(block + i);
            most = larger(rules.positive ? v : magnitude(v), most);
        }
        return largest<T>(most);
    }
    double amplitude(int k, double correlation) const {
        const double free = correlation / A.squares[k];
        const double w = std::isinf(rules.prior) ? 1 : (free + rules.prior) / (1 + rules.prior);
        return rules.positive ? smaller(larger(w, rules.least), rules.most) : w;
    }
    // What an atom lowers the objective by; for the Lasso the correlation itself.
    T score(int k, double correlation) const {
        if (rules.method == EventMethod::lasso) return T(correlation);
        const double square = A.squares[k];
        if (rules.prior == 0 && rules.least == 0 && std::isinf(rules.most))
            return T(correlation * correlation / square);
        const double w = amplitude(k, correlation), prior = std::isinf(rules.prior) ? 0 : rules.prior;
        return T(2 * w * correlation - w * w * square - prior * square * (w - 1) * (w - 1));
    }
    void score_blocks(int k, int64_t r, int64_t from, int64_t to) {
        for (int64_t b = from / BLOCK; b <= to / BLOCK; ++b)
            scores[(r * row_blocks + b) * K + k] = score(k, peak(at(k, r, b * BLOCK)));
    }
    static T largest_entry(const T *v, int64_t count) {
        Vec<T> most{};
        int64_t i = 0;
        for (; i + LANES<T> <= count; i += LANES<T>) most = larger(load(v + i), most);
        T found = largest<T>(most);
        for (; i < count; ++i) found = larger(v[i], found);
        return found;
    }
    void refresh(int64_t from, int64_t to) {
        for (int64_t b = from; b <= to; ++b) best[b] = largest_entry(scores + b * K, K);
        for (int64_t q = from / BLOCK; q <= to / BLOCK; ++q) top[q] = largest_entry(best + q * BLOCK, BLOCK);
    }

    // The best atom of the best block enters: at the first position, of the first template there.
    void enter(int64_t b) {
        int chosen = -1;
        int64_t place = BLOCK;
        const int64_t r = b / row_blocks, start = b % row_blocks * BLOCK;
        for (int k = 0; k < K; ++k) {
            if (scores[b * K + k] != best[b]) continue;
            const T *block = at(k, r, start), most = peak(block);
            int64_t i = 0;
            while (i < place && block[i] != most && (rules.positive || -block[i] != most)) ++i;
            if (i < place) {
                place = i;
                chosen = k;
            }
        }
        const int64_t column = start + place;
        const double correlation = *at(chosen, r, column);
        if (rules.method != EventMethod::mp) {
            if (!refit(chosen, r, column, best[b])) forbid(chosen, r, column, 0);  // it depends on the others
            return;
        }
        const double w = amplitude(chosen, correlation);
        events.push({-1, r, column, chosen, w, double(best[b]), 0, 0, false, false});
        ++living;
        const Held held(products, chosen);
        subtract(held, r, column, w);
        if (rules.refractory >= 0) forbid(chosen, r, column, rules.refractory);
    }

    // No atom of a template may stand within a distance of a position any more.
    void forbid(int k, int64_t r, int64_t column, int64_t distance) {
        const int64_t from = larger<int64_t>(0, column - distance), to = smaller(columns - 1, column + distance);
        for (int64_t t = from; t <= to; ++t) *at(k, r, t) = T(NAN);
        score_blocks(k, r, from, to);
        refresh(r * row_blocks + from / BLOCK, r * row_blocks + to / BLOCK);
    }

    // The correlations after w times a template has been taken from the signal.
    void subtract(const Held &held, int64_t r, int64_t column, double w) {
        const int64_t from = larger<int64_t>(0, column - width + 1), to = smaller(columns - 1, column + width - 1);
        const int64_t low = larger<int64_t>(0, r - height + 1), high = smaller(rows - 1, r + height - 1);
        const int64_t first = A.neighbour_starts[held.k], span = 2 * width - 1;
        const T *pair = held.rows + (height - 1 - r) * span + from - column + width - 1;
        for (int64_t m = first; m < A.neighbour_starts[held.k + 1]; ++m, pair += A.products_of_pair())
            for (int64_t i = low; i <= high; ++i) {
                add<T>(at(A.neighbours[m], i, from), T(-w), pair + i * span, int(to - from + 1));
                score_blocks(A.neighbours[m], i, from, to);
            }
        for (int64_t i = low; i <= high; ++i) refresh(i * row_blocks + from / BLOCK, i * row_blocks + to / BLOCK);
    }

    // ------------------------------------------------------------------ refits: OMP, its non-negative form, the Lasso

    int64_t &cell(int64_t r, int64_t column) { return cells[r / height * cells_across + column / width]; }

    int64_t insert(int32_t k, int64_t r, int64_t column, double score) {
        const Place place = {cell(r, column), r, column, k, 0, score, double(*at(k, r, column)), 0, false, false};
        int64_t e = unused;
        if (e >= 0) {
            unused = events[e].next;
            events[e] = place;
        } else {
            e = events.count;
            events.push(place);
        }
        cell(r, column) = e + 1;
        ++living;
        return e;
    }

    void remove(int64_t e) {
        publish(e);
        int64_t *link = &cell(events[e].row, events[e].column);
        while (*link != e + 1) link = &events[*link - 1].next;
        *link = events[e].next;
        events[e].kernel = -1;
        events[e].next = unused;
        unused = e;
        --living;
    }

    // Calls act(e) for the events that may overlap an atom at a position.
    template <class Act> void near(int64_t r, int64_t column, Act act) const {
        const int64_t last = columns / width, bottom = rows / height;
        for (int64_t i = larger<int64_t>(0, r / height - 1); i <= smaller(bottom, r / height + 1); ++i)
            for (int64_t q = larger<int64_t>(0, column / width - 1); q <= smaller(last, column / width + 1); ++q)
                for (int64_t e = cells[i * cells_across + q] - 1; e >= 0; e = events[e].next - 1)
                    if (std::abs(events[e].row - r) < height && std::abs(events[e].column - column) < width) act(e);
    }

    // <a, b> for the event e, whose template is held, and the event f.
    double inner(const Held &held, const Place &e, const Place &f) const {
        const int64_t dy = f.row - e.row, dx = f.column - e.column;
        if (std::abs(dy) >= height || std::abs(dx) >= width) return 0;
        int64_t low = A.neighbour_starts[held.k], high = A.neighbour_starts[held.k + 1];
        const int64_t first = low;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (A.neighbours[middle] < f.kernel) low = middle + 1;
            else high = middle;
        }
        if (low == A.neighbour_starts[held.k + 1] || A.neighbours[low] != f.kernel) return 0;
        return held.rows[(low - first) * A.products_of_pair() + (dy + height - 1) * (2 * width - 1) + dx + width - 1];
    }

    // Of a correlation with the residual: how far it may be from its value at the minimum.
    double tolerance(int k) const {
        const double rounding = 64.0 * double(EPS<T>) * heaviest * std::sqrt(A.squares[k]);
        if (rules.method == EventMethod::lasso)
            return larger(larger(slack, 1e-10 * rules.penalty + 64 * double(EPS<T>) * unit), rounding);
        return larger(larger(SETTLED, 16.0 * double(EPS<T>)) * std::sqrt(double(unit) * A.squares[k]), rounding);
    }

    bool is_settled(const Place &e) const {
        const double slope = e.correlation - (e.weight < 0 ? -rules.penalty : rules.penalty);
        return std::fabs(slope) <= tolerance(e.kernel);
    }

    void enqueue(int64_t e) {
        if (events[e].queued) return;
        events[e].queued = true;
        queue.push(e);
    }

    // False: no weight has changed.
    bool refit(int k, int64_t r, int64_t column, double score) {
        int64_t e = -1;
        near(r, column, [&](int64_t f) {
            if (events[f].kernel == k && events[f].row == r && events[f].column == column) e = f;
        });
        const bool is_new = e < 0;
        if (is_new) e = insert(k, r, column, score);
        else events[e].correlation = *at(k, r, column);
        const double before = events[e].weight;
        enqueue(e);
        settle();
        return events[e].kernel >= 0 && events[e].weight != before;
    }

    // Clusters are solved until the weights of all events are settled. Where that takes long, because events nearly depend
    // on one another, clusters become larger, and in the end it is given up.
    void settle() {
        const int64_t patience = 2 * queue.count + 8;
        int64_t left = patience;
        for (int64_t i = 0; i < queue.count; ++i) {
            check_interrupt(rules.stop);
            Place &e = events[queue[i]];
            e.queued = false;
            if (unsettled || e.kernel < 0 || (e.weight != 0 && is_settled(e))) continue;
            solve_cluster(queue[i]);
            if (--left > 0) continue;
            unsettled = most >= LARGEST_CLUSTER;
            most *= 2;
            left = patience;
        }
        if (rules.method != EventMethod::lasso)
            unsettled |= !(heaviest * heaviest * double(EPS<T>) <= unit);  // rounding errors are as large as the signal
        if (left > patience / 2 && most > CLUSTER) most /= 2;
        queue.count = 0;
        for (int64_t i = 0; i < moved.count; ++i) publish(moved[i]);
        moved.count = 0;
    }

    // The correlations of all atoms follow a weight once it is settled: it may change often until then.
    void publish(int64_t e) {
        const Place place = events[e];
        events[e].moved = false;
        events[e].pending = 0;
        if (place.pending != 0) subtract(Held(products, place.kernel), place.row, place.column, place.pending);
    }

    // The cluster of an event: those that overlap it, those that overlap these, and so on. It is solved in the opposite
    // order, so that an event that depends on the others is the one that is refused, and G has narrow rows.
    void solve_cluster(int64_t first) {
        members.count = 0;
        join(first);
        for (int64_t p = 0; p < members.count; ++p) {
            const Place e = events[members[p]];
            const Held held(products, e.kernel);
            near(e.row, e.column, [&](int64_t f) {
                if (events[f].member < 0 && members.count < most && inner(held, e, events[f]) != 0) join(f);
            });
        }
        const int n = int(members.count);
        local.begin(n);
        for (int p = 0; p < n; ++p) {
            const Place e = events[members[n - 1 - p]];
            const Held held(products, e.kernel);
            near(e.row, e.column, [&](int64_t f) {
                const int q = events[f].member < 0 ? n : n - 1 - events[f].member;
                const double product = q > p ? 0 : inner(held, e, events[f]);
                if (product != 0) local.connect(p, q, product);
            });
            local.x[p] = e.weight;
            local.r[p] = e.correlation;
            local.tolerance[p] = tolerance(e.kernel);
        }
        local.solve();
        for (int p = 0; p < n; ++p) {
            events[members[n - 1 - p]].member = -1;
            change(members[n - 1 - p], local.x[p]);
        }
        for (int p = 0; p < n; ++p)
            if (events[members[p]].weight == 0) remove(members[p]);
    }

    void join(int64_t e) {
        events[e].member = int(members.count);
        members.push(e);
    }

    void change(int64_t e, double weight) {
        const double by = weight - events[e].weight;
        if (by == 0) return;
        events[e].weight = weight;
        events[e].pending += by;
        heaviest = larger(heaviest, std::fabs(weight) * std::sqrt(A.squares[events[e].kernel]));
        if (!events[e].moved) moved.push(e);
        events[e].moved = true;
        const Place place = events[e];
        const Held held(products, place.kernel);
        near(place.row, place.column, [&](int64_t f) {
            const double product = inner(held, place, events[f]);
            if (product == 0) return;
            events[f].correlation -= by * product;
            if (!is_settled(events[f])) enqueue(f);
        });
    }
};

template <class T>
EventSearch<T> *search(const Templates<T> &A, const EventRules &rules, const Signal<T> &y, Products<T> &products) {
    return new Translates<T>(A, rules, y, products);
}

template <class T> constexpr TranslateKernels<T> translate_kernels = {template_products<T>, correlate<T>, search<T>};

}  // namespace
