// Samples once a minute, in memory: rows of values that many series share.
package main

import (
	"context"
	"hash/fnv"
	"math"
	"sync"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
)

const minute int64 = 60_000

// Bits of a value that was not scraped, and whose series did not end either.
const absent uint64 = 0x7ff8_dead_0000_0001

var (
	stale   = math.Float64frombits(value.StaleNaN)
	nothing = math.Float64frombits(absent)
)

// Values from a minute on; each is read `before` milliseconds before its minute.
type series struct {
	lset   labels.Labels
	start  int
	values []float64
	before int64
}

func (s *series) Labels() labels.Labels { return s.lset }

func (s *series) Iterator(chunkenc.Iterator) chunkenc.Iterator { return &iterator{series: s, at: -1} }

func (s *series) put(at int, number float64, every int) {
	if len(s.values) == 0 {
		s.start = at
	}
	s.end(at-every, every)
	for s.start+len(s.values) < at {
		s.values = append(s.values, nothing)
	}
	s.values = append(s.values, number)
}

// Marks the series as ended if its last value is older than the evaluation in the minute `last`.
func (s *series) end(last, every int) {
	size := len(s.values)
	if size == 0 || math.Float64bits(s.values[size-1]) == value.StaleNaN || s.start+size-1 > last-every {
		return
	}
	for range every - 1 {
		s.values = append(s.values, nothing)
	}
	s.values = append(s.values, stale)
}

type iterator struct {
	series *series
	at     int
}

func (i *iterator) Next() chunkenc.ValueType {
	for i.at++; i.at < len(i.series.values); i.at++ {
		if math.Float64bits(i.series.values[i.at]) != absent {
			return chunkenc.ValFloat
		}
	}
	return chunkenc.ValNone
}

func (i *iterator) Seek(t int64) chunkenc.ValueType {
	least := int((t+i.series.before+minute-1)/minute) - i.series.start
	if t+i.series.before < 0 {
		least = -i.series.start
	}
	if i.at >= 0 && i.at >= least {
		if i.at >= len(i.series.values) {
			return chunkenc.ValNone
		}
		return chunkenc.ValFloat
	}
	i.at = max(least, 0) - 1
	return i.Next()
}

func (i *iterator) At() (int64, float64) { return i.AtT(), i.series.values[i.at] }

func (i *iterator) AtT() int64 { return int64(i.series.start+i.at)*minute - i.series.before }

func (i *iterator) AtST() int64 { return 0 }

func (i *iterator) Err() error { return nil }

func (i *iterator) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) {
	panic("there are no histograms")
}

func (i *iterator) AtFloatHistogram(*histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	panic("there are no histograms")
}

type store struct {
	lock  sync.RWMutex // of `named`: rules that are evaluated at the same time add to it
	named map[string][]*series
	rows  map[string]*series
}

func newStore() *store { return &store{named: map[string][]*series{}, rows: map[string]*series{}} }

// Takes a series in promtool's notation, and says how many samples it has.
func (s *store) add(reads parser.Parser, name, values string) (int, error) {
	lset, _, err := reads.ParseSeriesDesc(name + " 0")
	if err != nil {
		return 0, err
	}
	row := s.rows[values]
	if row == nil {
		_, parsed, err := reads.ParseSeriesDesc("{} " + values)
		if err != nil {
			return 0, err
		}
		row = &series{}
		for _, each := range parsed {
			switch {
			case each.Omitted && len(row.values) == 0:
				row.start++
			case each.Omitted:
				row.values = append(row.values, nothing)
			default:
				row.values = append(row.values, rounded(each.Value))
			}
		}
		s.rows[values] = row
	}
	// Each target has a second of the minute of its own, as in Prometheus.
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(lset.Get("job") + lset.Get("instance")))
	before := int64(hash.Sum32()%60) * 1000
	s.keep(&series{lset: lset, start: row.start, values: row.values, before: before})
	count := 0
	for _, each := range row.values {
		if bits := math.Float64bits(each); bits != absent && bits != value.StaleNaN {
			count++
		}
	}
	return count, nil
}

func (s *store) keep(one *series) {
	s.lock.Lock()
	defer s.lock.Unlock()
	name := one.lset.Get(labels.MetricName)
	s.named[name] = append(s.named[name], one)
}

// The series of a rule with these labels, which is made if there is none.
func (s *store) row(known map[uint64]*series, lset labels.Labels) *series {
	key := lset.Hash()
	if known[key] == nil {
		known[key] = &series{lset: lset}
		s.keep(known[key])
	}
	return known[key]
}

func (s *store) Querier(begin, end int64) (storage.Querier, error) {
	return &querier{store: s, begin: begin, end: end}, nil
}

type querier struct {
	store      *store
	begin, end int64
}

func (q *querier) Select(
	_ context.Context, _ bool, hints *storage.SelectHints, matchers ...*labels.Matcher,
) storage.SeriesSet {
	begin, end := q.begin, q.end
	if hints != nil {
		begin, end = hints.Start, hints.End
	}
	found := &set{at: -1}
	q.store.lock.RLock()
	defer q.store.lock.RUnlock()
	for name, all := range q.store.named {
		var others []*labels.Matcher
		wanted := true
		for _, matcher := range matchers {
			if matcher.Name == labels.MetricName {
				wanted = wanted && matcher.Matches(name)
			} else {
				others = append(others, matcher)
			}
		}
		if !wanted {
			continue
		}
		for _, one := range all {
			if !matches(one.lset, others) {
				continue
			}
			first := int64(one.start)*minute - one.before
			last := int64(one.start+len(one.values))*minute - one.before
			if len(one.values) > 0 && first <= end && last >= begin {
				found.series = append(found.series, one)
			}
		}
	}
	return found
}

func matches(lset labels.Labels, matchers []*labels.Matcher) bool {
	for _, matcher := range matchers {
		if !matcher.Matches(lset.Get(matcher.Name)) {
			return false
		}
	}
	return true
}

func (q *querier) LabelValues(
	context.Context, string, *storage.LabelHints, ...*labels.Matcher,
) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (q *querier) LabelNames(
	context.Context, *storage.LabelHints, ...*labels.Matcher,
) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (q *querier) Close() error { return nil }

type set struct {
	series []*series
	at     int
}

func (s *set) Next() bool { s.at++; return s.at < len(s.series) }

func (s *set) At() storage.Series { return s.series[s.at] }

func (s *set) Err() error { return nil }

func (s *set) Warnings() annotations.Annotations { return nil }

// Sums of decimal fractions differ in their last digits: a counter is not to seem reset by that.
func rounded(number float64) float64 {
	if math.IsNaN(number) {
		return number
	}
	return math.Round(number*1e6) / 1e6
}
