package broker

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"motorpool/broker/ingest"
	"motorpool/telematics"
	"motorpool/telematics/dialects"
)

// metrics are what an instance counts. docs/metrics.md explains each. Series with labels exist
// from the start, so that zero can be read.
type metrics struct {
	commands          *prometheus.CounterVec // by action, outcome and protocol
	commandDuration   prometheus.Histogram
	refusals          *prometheus.CounterVec // by code
	commandsPublished prometheus.Counter
	commandsSwept     prometheus.Counter
	publications      prometheus.Counter
	publishFailures   prometheus.Counter

	answers              prometheus.Counter
	answersSettled       prometheus.Counter
	answersLate          prometheus.Counter
	answersToUnsent      prometheus.Counter
	answersOverruling    prometheus.Counter
	answersWithoutEffect prometheus.Counter
	answersUnrecorded    prometheus.Counter
	answersClockBehind   prometheus.Counter
	answersRecalled      prometheus.Counter
	clockAlarms          prometheus.Counter
	clockWrong           prometheus.Counter

	clockOffset prometheus.Gauge

	eventsPublished     prometheus.Counter
	refusalsNotRecorded prometheus.Counter

	dropped *prometheus.CounterVec // by kind and reason
}

// Kinds and reasons of what is dropped, beyond those of package ingest.
const (
	recalledAnswer ingest.Kind = "recalled_answer"
	event          ingest.Kind = "event"
	auditLogEntry  ingest.Kind = "audit_log_entry"
	settlement     ingest.Kind = "settlement"

	queueFull = "queue_full"
	notStored = "not_stored"
)

// durationBuckets, in seconds, are narrow where most commands end. The default and the longest
// budget are 10 s and 30 s; a command without an answer ends a moment later, within 11 s and 31 s.
var durationBuckets = []float64{0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 8, 11, 20, 31, 60}

// refusalCodes are those of commands that were not sent.
var refusalCodes = []telematics.Code{
	telematics.VehicleNotFound, telematics.VehicleHasNoUnit, telematics.CommandNotSupported,
	telematics.BestEffortIsDenied, telematics.VehicleStateConflict, telematics.CommandInProgress,
	telematics.VehicleOffline, telematics.TelematicsUnavailable, telematics.CommandsHalted,
	telematics.IdempotencyInProgress, telematics.IdempotencyMismatch,
}

func newMetrics(registerer prometheus.Registerer, inFlight, unrecordedUnits func() int) *metrics {
	create := promauto.With(registerer)
	counter := func(name, help string) prometheus.Counter {
		return create.NewCounter(prometheus.CounterOpts{Name: "motorpool_" + name, Help: help})
	}
	vector := func(name, help string, labels ...string) *prometheus.CounterVec {
		return create.NewCounterVec(prometheus.CounterOpts{Name: "motorpool_" + name, Help: help}, labels)
	}
	create.NewGaugeFunc(
		prometheus.GaugeOpts{Name: "motorpool_commands_in_flight", Help: "Commands of this instance that are not settled yet."},
		func() float64 { return float64(inFlight()) },
	)
	create.NewGaugeFunc(
		prometheus.GaugeOpts{
			Name: "motorpool_answers_unrecorded_units",
			Help: "Units that answered commands within ten minutes that are not in the database.",
		},
		func() float64 { return float64(unrecordedUnits()) },
	)
	m := &metrics{
		commands: vector("commands_total", "Commands that this instance has settled for their callers.", "action", "outcome", "protocol"),
		commandDuration: create.NewHistogram(prometheus.HistogramOpts{
			Name: "motorpool_command_duration_seconds",
			Help: "Time from the request of a command until it was settled.", Buckets: durationBuckets,
		}),
		refusals:          vector("commands_refused_total", "Requests for a command that were refused before anything was sent.", "code"),
		commandsPublished: counter("commands_published_total", "Commands that were published at least once."),
		commandsSwept: counter(
			"commands_swept_total",
			"Overdue commands that this instance has settled because the owner did not; not in motorpool_commands_total.",
		),
		publications:    counter("publications_total", "Command messages that the MQTT client took, retransmissions included."),
		publishFailures: counter("publish_failures_total", "Command messages that the MQTT client did not take."),

		answers:           counter("answers_total", "Messages read from the topics of answers."),
		answersSettled:    counter("answers_settled_total", "Answers that settled a command."),
		answersLate:       counter("answers_late_total", "Answers that settled a command after its caller was answered."),
		answersToUnsent:   counter("answers_to_unsent_total", "Answers that settled a command of which no publication is recorded."),
		answersOverruling: counter("answers_overruling_total", "Answers that settled a command which the unit had rejected before."),
		answersWithoutEffect: counter(
			"answers_without_effect_total", "Answers that changed nothing: duplicates, or to no command of that unit.",
		),
		answersUnrecorded:  counter("answers_unrecorded_total", "Answers to commands that are not in the database."),
		answersClockBehind: counter("answers_clock_behind_total", "Commands rejected because they were dated ahead of the unit's clock."),
		answersRecalled: counter(
			"answers_recalled_total", "Earlier answers repeated in reports that were checked against the database.",
		),
		clockAlarms: counter(
			"clock_alarms_total",
			"Commands rejected by a unit whose clock is behind, shortly after another unit's rejection.",
		),
		clockWrong: counter("clock_wrong_total", "Times that the clock of this instance was found to be wrong."),
		clockOffset: create.NewGauge(prometheus.GaugeOpts{
			Name: "motorpool_clock_offset_seconds",
			Help: "How far the clock of this instance was ahead of Postgres's at the latest comparison; negative: behind.",
		}),

		eventsPublished: counter("events_published_total", "Events added to the event log."),
		refusalsNotRecorded: counter(
			"refusals_not_recorded_total",
			"Refusals missing from the audit log because their actor was refused too often.",
		),
		dropped: vector("dropped_total", "What was received or produced, and then dropped.", "kind", "reason"),
	}
	for _, action := range append(slices.Clone(telematics.ControlActions), telematics.ReportState) {
		for _, outcome := range []telematics.Outcome{
			telematics.Executed, telematics.NotExecuted, telematics.HasFailed, telematics.MayHave,
		} {
			for _, protocol := range dialects.Spoken.Names() {
				m.commands.WithLabelValues(string(action), string(outcome), string(protocol))
			}
		}
	}
	for _, code := range refusalCodes {
		m.refusals.WithLabelValues(string(code))
	}
	for kind, reasons := range map[ingest.Kind][]string{
		ingest.Answer:  {queueFull, notStored},
		recalledAnswer: {queueFull},
		event:          {queueFull, notStored},
		auditLogEntry:  {queueFull, notStored},
		settlement:     {queueFull, notStored},
	} {
		for _, reason := range reasons {
			m.drop(kind, reason, 0)
		}
	}
	return m
}

// registerQueues registers gauges of the lengths of a broker's queues and outbox.
func (b *Broker) registerQueues() {
	ingest.RegisterQueue(
		b.config.Metrics, ingest.Answer,
		func() int {
			return len(b.first) + len(b.answers) + len(b.overAllowance) + len(b.uncorrelated) + len(b.later)
		},
	)
	ingest.RegisterQueue(b.config.Metrics, recalledAnswer, func() int { return len(b.repeated) })
	ingest.RegisterQueue(b.config.Metrics, event, func() int { return len(b.events.queue) })
	for kind, waiting := range map[string]func() int{
		string(settlement): b.outbox.waitingSettlements, string(auditLogEntry): b.outbox.waitingEntries,
	} {
		promauto.With(b.config.Metrics).NewGaugeFunc(prometheus.GaugeOpts{
			Name: "motorpool_outbox_items", Help: "What Postgres has not taken yet, and is offered again each second.",
			ConstLabels: prometheus.Labels{"kind": kind},
		}, func() float64 { return float64(waiting()) })
	}
}

// drop counts what is dropped.
func (m *metrics) drop(kind ingest.Kind, reason string, n int) {
	m.dropped.WithLabelValues(string(kind), reason).Add(float64(n))
}

// settled counts a command that this instance has settled for its caller, by the protocol of its
// unit.
func (m *metrics) settled(c *telematics.Command, protocol telematics.Protocol, took time.Duration) {
	m.commands.WithLabelValues(string(c.Action), string(c.State.Outcome()), protocol.Name()).Inc()
	m.commandDuration.Observe(max(took, 0).Seconds()) // negative where the clock was set back
}

// refused counts a request for a command that was refused.
func (m *metrics) refused(code telematics.Code) { m.refusals.WithLabelValues(string(code)).Inc() }
