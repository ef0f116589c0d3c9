package ingest

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"motorpool/telematics"
)

// Kind is a kind of message or value, as the label of a metric.
type Kind string

// Kinds of messages from units, in any protocol.
const (
	Answer   Kind = "answer"
	Report   Kind = "report"
	Presence Kind = "presence"

	observationKind Kind = "observation"
	unknownUnitKind Kind = "unknown_unit"
	unitHealthKind  Kind = "unit_health"
)

// Reasons for dropping that the unit has not caused, as labels.
const (
	queueFull = "queue_full"
	notStored = "not_stored"
)

// faults are the reasons for dropping a part of a report.
var faults = []telematics.Fault{"", telematics.WrongType, telematics.OutOfRange, telematics.UnknownWord, telematics.WrongTime}

// metrics are the metrics of ingestion. docs/metrics.md explains each. Series with labels exist
// from the start, so that zero can be read.
type metrics struct {
	all *prometheus.CounterVec // what is dropped, by kind and reason

	reports            prometheus.Counter
	reportsMerged      prometheus.Counter
	fieldsDropped      *prometheus.CounterVec // by reason
	presence           prometheus.Counter
	presenceFormer     prometheus.Counter
	presenceOutdated   prometheus.Counter
	unknownUnits       prometheus.Counter
	protocolMismatches prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer, dropped *prometheus.CounterVec) *metrics {
	create := promauto.With(registerer)
	counter := func(name, help string) prometheus.Counter {
		return create.NewCounter(prometheus.CounterOpts{Name: "motorpool_" + name, Help: help})
	}
	byReason := func(name, help string) *prometheus.CounterVec {
		return create.NewCounterVec(prometheus.CounterOpts{Name: "motorpool_" + name, Help: help}, []string{"reason"})
	}
	ignored := byReason(
		"presence_ignored_total",
		"Presence messages that were ignored. former_session: the last will of an older connection; outdated: older than what is recorded.",
	)
	m := &metrics{
		all: dropped, reports: counter("reports_total", "Messages read from the topics of telemetry."),
		reportsMerged: counter("reports_merged_total", "Reports merged into the reported state of their vehicles."),
		fieldsDropped: byReason(
			"report_fields_dropped_total",
			"Parts of sound reports that were dropped. out_of_range: a value that cannot be true; wrong_time: "+
				"the report counts with the time of its arrival; other: such as half a position.",
		),
		presence:           counter("presence_messages_total", "Messages read from the topics of presence."),
		presenceFormer:     ignored.WithLabelValues("former_session"),
		presenceOutdated:   ignored.WithLabelValues("outdated"),
		unknownUnits:       counter("unknown_unit_messages_total", "Messages of units that no vehicle is assigned to."),
		protocolMismatches: counter("protocol_mismatches_total", "Messages in another protocol than the one recorded for their unit."),
	}
	for _, fault := range faults {
		m.fieldsDropped.WithLabelValues(string(fault.Reject()))
	}
	for kind, reasons := range map[Kind][]telematics.Reject{
		Answer:   {telematics.Malformed, telematics.TooLarge, telematics.KeptByBroker, telematics.OverAllowance},
		Report:   {telematics.Malformed, telematics.TooLarge, telematics.KeptByBroker, telematics.OverAllowance},
		Presence: {telematics.Malformed, telematics.TooLarge, telematics.OverAllowance},
	} {
		for _, reason := range reasons {
			m.dropped(kind, string(reason))
		}
	}
	for kind, reasons := range map[Kind][]string{
		Report: {queueFull}, Presence: {queueFull}, observationKind: {queueFull, notStored}, unknownUnitKind: {queueFull},
		unitHealthKind: {queueFull},
	} {
		for _, reason := range reasons {
			m.dropped(kind, reason)
		}
	}
	return m
}

// RegisterQueue registers how many messages of a kind wait to be handled.
func RegisterQueue(registerer prometheus.Registerer, kind Kind, length func() int) {
	promauto.With(registerer).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "motorpool_queue_messages", Help: "Messages and events that wait to be handled.",
		ConstLabels: prometheus.Labels{"kind": string(kind)},
	}, func() float64 { return float64(length()) })
}

func (m *metrics) dropped(kind Kind, reason string) prometheus.Counter {
	return m.all.WithLabelValues(string(kind), reason)
}

// Reject counts a message that is dropped because of what its unit has sent.
func (in *Ingest) Reject(unit telematics.Unit, kind Kind, why telematics.Reject) {
	in.metrics.dropped(kind, string(why)).Inc()
	in.health.reject(unit, why, in.Now())
}

// DropFields counts the parts of a unit's report that were not taken.
func (in *Ingest) DropFields(unit telematics.Unit, dropped []telematics.Dropped) {
	for _, d := range dropped {
		in.metrics.fieldsDropped.WithLabelValues(string(d.Fault.Reject())).Inc()
		in.health.reject(unit, d.Fault.Reject(), in.Now())
	}
}
