// SPDX-License-Identifier: Apache-2.0
//
// Rules that choose a point by the sizes: as text, applied, and learnt from times.
//
//   method  a tree: of all sizes that were measured, those on each side of a threshold get
//           the point that is slowest against the best by the least on average (of
//           logarithms); the threshold that gains most divides them, as long as it gains
//           enough. Thresholds lie halfway, by ratios, between sizes that were measured.

#include "tune/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Text --------------------------------------------------------------------------------

bool is_rule(const char *text)
{
    return strstr(text, ": ") != NULL;
}

void rule_print_tests(Buf *out, const RuleRow *row)
{
    for (int k = 0; k < row->ntest; k++)
        buf_printf(out, "%s%s %s %lld", k ? ", " : "", row->test[k].size,
                   row->test[k].below ? "<" : ">=", (long long)row->test[k].than);
}

void rule_print(Buf *out, const Rule *rule)
{
    for (int i = 0; i < rule->n; i++) {
        const RuleRow *row = &rule->row[i];
        buf_puts(out, i ? "; " : "");
        rule_print_tests(out, row);
        buf_printf(out, "%s%s", row->ntest || rule->n == 1 ? ": " : "", row->point);
    }
}

static bool parse_tests(char *text, Arena *arena, RuleRow *row)
{
    char *save = NULL;
    for (char *item = strtok_r(text, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
        char name[RULE_SIZE_NAME], sign[3];
        long long than;
        if (row->ntest == RULE_TESTS ||
            sscanf(item, " %63s %2s %lld", name, sign, &than) != 3 ||
            (strcmp(sign, "<") != 0 && strcmp(sign, ">=") != 0))
            return false;
        row->test[row->ntest++] =
            (RuleTest){arena_strdup(arena, name), sign[0] == '<', than};
    }
    return true;
}

bool rule_parse(const char *text, Arena *arena, Rule *rule)
{
    char *copy = arena_strdup(arena, text), *save = NULL;
    *rule = (Rule){0};
    for (char *item = strtok_r(copy, ";", &save); item; item = strtok_r(NULL, ";", &save)) {
        if (rule->n == RULE_ROWS)
            return false;
        RuleRow *row = &rule->row[rule->n++];
        char *colon = strchr(item, ':');
        row->point = (colon ? colon + 1 : item) + strspn(colon ? colon + 1 : item, " ");
        if (colon)
            *colon = 0;
        if (colon && !parse_tests(item, arena, row))
            return false;
    }
    return rule->n > 0 && rule->row[rule->n - 1].ntest == 0;
}

// Applied -----------------------------------------------------------------------------

bool rule_next_size(const char **sizes, char name[RULE_SIZE_NAME])
{
    size_t len = strcspn(*sizes, "*");
    snprintf(name, RULE_SIZE_NAME, "%.*s", (int)len, *sizes);
    *sizes += len + ((*sizes)[len] == '*');
    return len > 0;
}

static bool holds(const RuleTest *test, const Binding *binding, int n)
{
    char name[RULE_SIZE_NAME];
    int64_t value = 1;
    for (const char *at = test->size; rule_next_size(&at, name);) {
        const Binding *size = binding_find(binding, n, name);
        value *= size ? size->value : 0;
    }
    return value && (value < test->than) == test->below;
}

int rule_choose(const Rule *rule, const Binding *binding, int n)
{
    for (int i = 0; i < rule->n; i++) {
        bool all = true;
        for (int k = 0; k < rule->row[i].ntest; k++)
            all = all && holds(&rule->row[i].test[k], binding, n);
        if (all)
            return i;
    }
    return rule->n - 1;
}

int rule_points(const Rule *rule, const char *point[RULE_ROWS])
{
    int n = 0;
    for (int i = 0; i < rule->n; i++) {
        bool seen = false;
        for (int k = 0; k < n; k++)
            seen = seen || strcmp(point[k], rule->row[i].point) == 0;
        if (!seen)
            point[n++] = rule->row[i].point;
    }
    return n;
}

// Learnt ------------------------------------------------------------------------------

// A point that cannot be used counts as this many times the best.
static const double UNUSABLE = 1e6;
// What a threshold must gain: ten per cent at one of the sizes, or less at more. What gains
// less is often an accident of the sizes that were measured, and costs more at others.
static const double GAIN = 0.1;

typedef uint64_t Sizes; // a bit each

static double loss_at(const RuleTimes *t, int point, int s)
{
    double best = INFINITY, time = t->time[point * t->nsize + s];
    for (int p = 0; p < t->npoint; p++)
        best = fmin(best, t->time[p * t->nsize + s]);
    return !(best < INFINITY) ? 0 : time < INFINITY ? log(time / best) : log(UNUSABLE);
}

// The point that loses least at some sizes.
static int choose_point(const RuleTimes *t, Sizes at, double *loss)
{
    int best = 0;
    *loss = INFINITY;
    for (int p = 0; p < t->npoint; p++) {
        double sum = 0;
        for (int s = 0; s < t->nsize; s++)
            sum += at >> s & 1 ? loss_at(t, p, s) : 0;
        if (sum < *loss) {
            *loss = sum;
            best = p;
        }
    }
    return best;
}

static Sizes below(const RuleTimes *t, Sizes at, int name, int64_t than)
{
    Sizes sizes = 0;
    for (int s = 0; s < t->nsize; s++)
        if ((at >> s & 1) && t->size[s][name] < than)
            sizes |= (Sizes)1 << s;
    return sizes;
}

// The next larger value of a size among some; 0: there is none.
static int64_t next_value(const RuleTimes *t, Sizes at, int name, int64_t value)
{
    int64_t next = 0;
    for (int s = 0; s < t->nsize; s++)
        if ((at >> s & 1) && t->size[s][name] > value && (!next || t->size[s][name] < next))
            next = t->size[s][name];
    return next;
}

typedef struct {
    double gain;
    int name;
    int64_t than;
} Cut;

static Cut best_cut(const RuleTimes *t, Sizes at, double loss)
{
    Cut cut = {0};
    for (int name = 0; name < t->nname; name++) {
        int64_t value = next_value(t, at, name, 0), next;
        for (; (next = next_value(t, at, name, value)); value = next) {
            double left, right;
            int64_t than = (int64_t)ceil(sqrt((double)value * (double)next));
            Sizes less = below(t, at, name, than);
            choose_point(t, less, &left);
            choose_point(t, at & ~less, &right);
            if (loss - left - right > cut.gain)
                cut = (Cut){loss - left - right, name, than};
        }
    }
    return cut;
}

static void learn(const RuleTimes *t, Sizes at, RuleRow path, int rows, Rule *rule)
{
    double loss;
    int point = choose_point(t, at, &loss);
    Cut cut = best_cut(t, at, loss);
    if (cut.gain < GAIN || path.ntest == RULE_TESTS || rows < 2) {
        path.point = t->point[point];
        rule->row[rule->n++] = path;
        return;
    }
    Sizes less = below(t, at, cut.name, cut.than);
    RuleRow left = path, right = path;
    left.test[left.ntest++] = (RuleTest){t->name[cut.name], true, cut.than};
    right.test[right.ntest++] = (RuleTest){t->name[cut.name], false, cut.than};
    learn(t, less, left, rows / 2, rule);
    learn(t, at & ~less, right, rows - rows / 2, rule);
}

// N < 8 and N < 4 is N < 4.
static void drop_weaker(RuleRow *row)
{
    for (int i = 0; i < row->ntest; i++)
        for (int k = 0; k < row->ntest; k++) {
            const RuleTest *a = &row->test[i], *b = &row->test[k];
            if (i != k && a->below == b->below && strcmp(a->size, b->size) == 0 &&
                (a->below ? a->than <= b->than : a->than >= b->than)) {
                row->test[k] = row->test[--row->ntest];
                i = k = -1;
                break;
            }
        }
}

// A test that the rows before have decided is not asked again: of a row after one that is
// told of `N < x` only, N is not below x.
static void shorten(Rule *rule)
{
    for (int i = 0; i < rule->n; i++)
        drop_weaker(&rule->row[i]);
    for (int i = 1; i < rule->n; i++) {
        RuleRow *row = &rule->row[i];
        for (int k = 0; k < row->ntest; k++) {
            bool known = false;
            for (int j = 0; j < i && !known; j++) {
                const RuleRow *before = &rule->row[j];
                known = before->ntest == 1 && before->test[0].below &&
                        !row->test[k].below &&
                        strcmp(before->test[0].size, row->test[k].size) == 0 &&
                        before->test[0].than >= row->test[k].than;
            }
            if (known)
                row->test[k--] = row->test[--row->ntest];
        }
    }
    rule->row[rule->n - 1].ntest = 0; // what is left
}

// Neighbours with one point, where both are told by one size alone, are one row.
static void join(Rule *rule)
{
    for (int i = 0; i + 1 < rule->n; i++) {
        const RuleRow *row = &rule->row[i], *next = row + 1;
        if (strcmp(row->point, next->point) == 0 && (next->ntest == 0 || row->ntest <= 1) &&
            (next->ntest == 0 ||
             (next->ntest == 1 && row->ntest == 1 && row->test[0].below &&
              next->test[0].below && strcmp(row->test[0].size, next->test[0].size) == 0))) {
            memmove(&rule->row[i], &rule->row[i + 1],
                    (size_t)(rule->n - i - 1) * sizeof *row);
            rule->n--;
            i--;
        }
    }
}

void rule_learn(const RuleTimes *times, Rule *rule)
{
    *rule = (Rule){0};
    Sizes all = times->nsize < 64 ? ((Sizes)1 << times->nsize) - 1 : ~(Sizes)0;
    learn(times, all, (RuleRow){0}, RULE_ROWS, rule);
    shorten(rule);
    join(rule);
}
