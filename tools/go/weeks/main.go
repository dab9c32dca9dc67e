// Plays samples of a week to recording and alerting rules, with the PromQL engine and the alerting rules of Prometheus.
//
// It reads one JSON document from stdin and writes one to stdout. Expressions are evaluated as range queries, a chunk of
// the week after the other, and each rule in the order of its groups; so rules may read what earlier rules record.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
)

type rule struct {
	Record        string            `json:"record"`
	Alert         string            `json:"alert"`
	Expr          string            `json:"expr"`
	For           string            `json:"for"`
	KeepFiringFor string            `json:"keep_firing_for"`
	Labels        map[string]string `json:"labels"`
}

type group struct {
	Name     string `json:"name"`
	Interval string `json:"interval"`
	Rules    []rule `json:"rules"`
}

type document struct {
	Minutes int        `json:"minutes"`
	Chunk   int        `json:"chunk"`
	Groups  []group    `json:"groups"`
	Series  [][]string `json:"series"` // each: labels, values in promtool's notation
	Ask     string     `json:"ask"`
	Verbose bool       `json:"verbose"`
}

type interval struct {
	Labels map[string]string `json:"labels"`
	First  int               `json:"first"`
	Last   int               `json:"last"`
}

type result struct {
	Sent    []interval         `json:"sent"`
	Series  int                `json:"series"`
	Samples int                `json:"samples"`
	Seconds map[string]float64 `json:"seconds"`
}

const workers = 4

// One rule with what it needs from chunk to chunk.
type played struct {
	name     string
	expr     string
	every    int
	labels   labels.Labels
	recorded map[uint64]*series
	alerting *rules.AlertingRule
	minutes  []promql.Vector
	active   bool
	needs    []*played
	done     chan struct{}
	err      error
	seconds  float64
}

type player struct {
	ctx    context.Context
	engine *promql.Engine
	store  *store
	parser parser.Parser
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var given document
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		return err
	}
	reads := parser.NewParser(parser.Options{})
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	player := &player{
		ctx: context.Background(), parser: reads, store: newStore(),
		engine: promql.NewEngine(promql.EngineOpts{
			Logger: quiet, MaxSamples: math.MaxInt, Timeout: 24 * time.Hour, LookbackDelta: 5 * time.Minute,
			EnableAtModifier: true, EnableNegativeOffset: true, Parser: reads,
			NoStepSubqueryIntervalFn: func(int64) int64 { return minute },
		}),
	}
	found := result{Sent: []interval{}, Seconds: map[string]float64{}}
	for _, each := range given.Series {
		samples, err := player.store.add(reads, each[0], each[1])
		if err != nil {
			return fmt.Errorf("%s: %w", each[0], err)
		}
		found.Samples += samples
	}
	found.Series = len(given.Series)
	order, err := player.order(given.Groups, quiet)
	if err != nil {
		return err
	}
	told := map[string]*interval{}
	for first := 0; first < given.Minutes; first += given.Chunk {
		last := min(first+given.Chunk, given.Minutes) - 1
		if err := player.playAll(order, first, last); err != nil {
			return err
		}
		if given.Verbose {
			fmt.Fprintf(os.Stderr, "until minute %d\n", last)
		}
		matrix, err := player.query(given.Ask, first, last, 1)
		if err != nil {
			return err
		}
		for _, line := range matrix {
			for _, point := range line.Floats {
				at, key := int(point.T/minute), line.Metric.String()
				if known := told[key]; known != nil && at <= known.Last+15 {
					known.Last = at
					continue
				}
				if known := told[key]; known != nil {
					found.Sent = append(found.Sent, *known)
				}
				told[key] = &interval{Labels: line.Metric.Map(), First: at, Last: at}
			}
		}
	}
	for _, each := range told {
		found.Sent = append(found.Sent, *each)
	}
	for _, each := range order {
		found.Seconds[each.name] += each.seconds
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

// All rules in the order in which they are evaluated.
func (p *player) order(groups []group, logger *slog.Logger) ([]*played, error) {
	var found []*played
	for _, each := range groups {
		every := 1
		if each.Interval != "" {
			duration, err := model.ParseDuration(each.Interval)
			if err != nil {
				return nil, err
			}
			every = max(1, int(time.Duration(duration)/time.Minute))
		}
		for _, declared := range each.Rules {
			expr, err := p.parser.ParseExpr(declared.Expr)
			if err != nil {
				return nil, fmt.Errorf("%s%s: %w", declared.Record, declared.Alert, err)
			}
			one := &played{name: declared.Record + declared.Alert, expr: declared.Expr, every: every}
			if declared.Alert == "" {
				one.recorded = map[uint64]*series{}
				builder := labels.NewBuilder(labels.FromMap(declared.Labels))
				one.labels = builder.Set(labels.MetricName, declared.Record).Labels()
			} else {
				one.recorded = map[uint64]*series{}
				one.alerting = rules.NewAlertingRule(
					declared.Alert, expr, duration(declared.For), duration(declared.KeepFiringFor),
					labels.FromMap(declared.Labels), labels.EmptyLabels(), labels.EmptyLabels(), "", true, logger,
				)
			}
			for _, other := range found {
				// Alerts come after all that is recorded; what is recorded, after what it reads.
				if other.alerting == nil && (one.alerting != nil || strings.Contains(one.expr, other.name)) {
					one.needs = append(one.needs, other)
				}
			}
			found = append(found, one)
		}
	}
	return found, nil
}

// Evaluates all rules in these minutes, several at a time.
func (p *player) playAll(order []*played, first, last int) error {
	for _, each := range order {
		each.done = make(chan struct{})
	}
	free := make(chan struct{}, workers)
	for _, each := range order {
		go func() {
			defer close(each.done)
			for _, other := range each.needs {
				<-other.done
			}
			free <- struct{}{}
			began := time.Now()
			each.err = p.play(each, first, last)
			each.seconds += time.Since(began).Seconds()
			<-free
		}()
	}
	for _, each := range order {
		<-each.done
		if each.err != nil {
			return fmt.Errorf("%s: %w", each.name, each.err)
		}
	}
	return nil
}

func duration(text string) time.Duration {
	if text == "" {
		return 0
	}
	found, err := model.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return time.Duration(found)
}

// Evaluates a rule in these minutes, and keeps what it records or tells.
func (p *player) play(one *played, first, last int) error {
	first = (first + one.every - 1) / one.every * one.every
	if first > last {
		return nil
	}
	matrix, err := p.query(one.expr, first, last, one.every)
	if err != nil {
		return err
	}
	if one.alerting != nil {
		return p.alert(one, matrix, first, last)
	}
	for _, line := range matrix {
		lset := with(line.Metric, one.labels)
		row := p.store.row(one.recorded, lset)
		for _, point := range line.Floats {
			row.put(int(point.T/minute), point.F, one.every)
		}
	}
	for _, row := range one.recorded {
		row.end(last, one.every)
	}
	return nil
}

func with(metric, more labels.Labels) labels.Labels {
	builder := labels.NewBuilder(metric)
	more.Range(func(each labels.Label) { builder.Set(each.Name, each.Value) })
	return builder.Labels()
}

// Goes through an alert's states minute by minute, as Prometheus does.
func (p *player) alert(one *played, matrix promql.Matrix, first, last int) error {
	one.minutes = make([]promql.Vector, last-first+1)
	for _, line := range matrix {
		for _, point := range line.Floats {
			at := int(point.T/minute) - first
			one.minutes[at] = append(one.minutes[at], promql.Sample{Metric: line.Metric, T: point.T, F: point.F})
		}
	}
	for at, vector := range one.minutes {
		if len(vector) == 0 && !one.active {
			continue
		}
		now := time.UnixMilli(int64(first+at) * minute)
		told, err := one.alerting.Eval(
			p.ctx, 0, now, func(context.Context, string, time.Time) (promql.Vector, error) { return vector, nil },
			&url.URL{}, 0,
		)
		if err != nil {
			return err
		}
		one.active = len(one.alerting.ActiveAlerts()) > 0
		for _, sample := range told {
			if sample.Metric.Get(labels.MetricName) == "ALERTS" && sample.Metric.Get("alertstate") == "firing" {
				p.store.row(one.recorded, sample.Metric).put(first+at, 1, one.every)
			}
		}
	}
	for _, row := range one.recorded {
		row.end(last, one.every)
	}
	return nil
}

func (p *player) query(expr string, first, last, every int) (promql.Matrix, error) {
	begin, end := time.UnixMilli(int64(first)*minute), time.UnixMilli(int64(last)*minute)
	query, err := p.engine.NewRangeQuery(p.ctx, p.store, nil, expr, begin, end, time.Duration(every)*time.Minute)
	if err != nil {
		return nil, err
	}
	found := query.Exec(p.ctx)
	if found.Err != nil {
		return nil, found.Err
	}
	// Closing would hand the points back to a pool; the labels and points are read before that by nobody else.
	return found.Matrix()
}
