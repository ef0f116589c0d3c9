package broker

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"motorpool/telematics"
)

// metrics are what an instance counts. docs/operating.md explains each. Series with labels exist from the start, so that
// zero can be read.
type metrics struct {
	commands          *prometheus.CounterVec // by action and outcome
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

	reports             prometheus.Counter
	reportsMerged       prometheus.Counter
	fieldsDropped       *prometheus.CounterVec // by reason
	presence            prometheus.Counter
	presenceFormer      prometheus.Counter
	presenceOutdated    prometheus.Counter
	unknownUnits        prometheus.Counter
	protocolMismatches  prometheus.Counter
	eventsPublished     prometheus.Counter
	refusalsNotRecorded prometheus.Counter

	overAllowance map[messageKind]prometheus.Counter
	dropped       struct {
		answersMalformed, answersTooLarge, answersRetained, answersQueueFull, answersNotStored prometheus.Counter
		reportsMalformed, reportsTooLarge, reportsRetained, reportsQueueFull                   prometheus.Counter
		presenceMalformed, presenceTooLarge, presenceQueueFull                                 prometheus.Counter
		resultsQueueFull                                                                       prometheus.Counter
		observationsQueueFull, observationsNotStored                                           prometheus.Counter
		unknownUnitsQueueFull                                                                  prometheus.Counter
		eventsQueueFull, eventsNotStored                                                       prometheus.Counter
	}
}

// messageKind is what a unit sends, whatever its protocol.
type messageKind string

const (
	answerKind   messageKind = "answer"
	reportKind   messageKind = "report"
	presenceKind messageKind = "presence"
)

// durationBuckets, in seconds, are narrow where most commands end. The default and the longest budget are 10 s and 30 s; a
// command without an answer ends a moment later, within 11 s and 31 s.
var durationBuckets = []float64{0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 8, 11, 20, 31, 60}

// refusalCodes are those of commands that were not sent.
var refusalCodes = []telematics.Code{
	telematics.VehicleNotFound, telematics.VehicleHasNoUnit, telematics.CommandNotSupported, telematics.VehicleStateConflict, telematics.CommandInProgress,
	telematics.VehicleOffline, telematics.TelematicsUnavailable, telematics.CommandsHalted, telematics.IdempotencyInProgress, telematics.IdempotencyMismatch,
}

// faultReasons name what is wrong with a dropped part of a report.
var faultReasons = map[telematics.Fault]string{
	"": "other", telematics.WrongType: "wrong_type", telematics.OutOfRange: "out_of_range", telematics.UnknownWord: "unknown_word", telematics.WrongTime: "wrong_time",
}

func newMetrics(registerer prometheus.Registerer, inFlight func() int) *metrics {
	create := promauto.With(registerer)
	counter := func(name, help string) prometheus.Counter {
		return create.NewCounter(prometheus.CounterOpts{Name: "motorpool_" + name, Help: help})
	}
	vector := func(name, help string, labels ...string) *prometheus.CounterVec {
		return create.NewCounterVec(prometheus.CounterOpts{Name: "motorpool_" + name, Help: help}, labels)
	}
	create.NewGaugeFunc(prometheus.GaugeOpts{Name: "motorpool_commands_in_flight", Help: "Commands of this instance that are not settled yet."},
		func() float64 { return float64(inFlight()) })
	m := &metrics{
		commands: vector("commands_total", "Commands that this instance has settled for their callers.", "action", "outcome"),
		commandDuration: create.NewHistogram(prometheus.HistogramOpts{
			Name: "motorpool_command_duration_seconds", Help: "Time from the request of a command until it was settled.", Buckets: durationBuckets,
		}),
		refusals:          vector("commands_refused_total", "Requests for a command that were refused before anything was sent.", "code"),
		commandsPublished: counter("commands_published_total", "Commands that were published at least once."),
		commandsSwept:     counter("commands_swept_total", "Overdue commands that this instance has settled because the owner did not."),
		publications:      counter("publications_total", "Command messages that the MQTT client took, retransmissions included."),
		publishFailures:   counter("publish_failures_total", "Command messages that the MQTT client did not take."),

		answers:              counter("answers_total", "Messages read from the topics of answers."),
		answersSettled:       counter("answers_settled_total", "Answers that settled a command."),
		answersLate:          counter("answers_late_total", "Answers that settled a command after its caller was answered."),
		answersToUnsent:      counter("answers_to_unsent_total", "Answers that settled a command of which no publication is recorded."),
		answersOverruling:    counter("answers_overruling_total", "Answers that settled a command which the unit had rejected before."),
		answersWithoutEffect: counter("answers_without_effect_total", "Answers that changed nothing: duplicates, or to no command of that unit."),
		answersUnrecorded:    counter("answers_unrecorded_total", "Answers to commands that are not in the database."),
		answersClockBehind:   counter("answers_clock_behind_total", "Commands rejected because they were dated ahead of the unit's clock."),
		answersRecalled:      counter("answers_recalled_total", "Earlier answers repeated in reports that were checked against the database."),
		clockAlarms:          counter("clock_alarms_total", "Commands rejected by a unit whose clock is behind, shortly after another unit's rejection."),
		clockWrong:           counter("clock_wrong_total", "Times that the clock of this instance was found to be wrong."),

		reports:             counter("reports_total", "Messages read from the topics of telemetry."),
		reportsMerged:       counter("reports_merged_total", "Reports merged into the reported state of their vehicles."),
		fieldsDropped:       vector("report_fields_dropped_total", "Unsound parts of sound reports.", "reason"),
		presence:            counter("presence_messages_total", "Messages read from the topics of presence."),
		unknownUnits:        counter("unknown_unit_messages_total", "Messages of units that no vehicle is assigned to."),
		protocolMismatches:  counter("protocol_mismatches_total", "Messages in another protocol than the one recorded for their unit."),
		eventsPublished:     counter("events_published_total", "Events added to the event log."),
		refusalsNotRecorded: counter("refusals_not_recorded_total", "Refusals missing from the audit log because their actor was refused too often."),
		overAllowance:       map[messageKind]prometheus.Counter{},
	}
	for _, action := range append(slices.Clone(telematics.ControlActions), telematics.ReportState) {
		for _, outcome := range []telematics.Outcome{telematics.Executed, telematics.NotExecuted, telematics.HasFailed, telematics.MayHave} {
			m.commands.WithLabelValues(string(action), string(outcome))
		}
	}
	for _, code := range refusalCodes {
		m.refusals.WithLabelValues(string(code))
	}
	for _, reason := range faultReasons {
		m.fieldsDropped.WithLabelValues(reason)
	}
	ignored := vector("presence_ignored_total", "Presence messages that were older than what is recorded.", "reason")
	m.presenceFormer, m.presenceOutdated = ignored.WithLabelValues("former_session"), ignored.WithLabelValues("outdated")
	m.createDropped(vector("dropped_total", "What was received or produced, and then dropped.", "kind", "reason"))
	return m
}

func (m *metrics) createDropped(dropped *prometheus.CounterVec) {
	const (
		malformed = "malformed"
		tooLarge  = "too_large"
		retained  = "retained"
		queueFull = "queue_full"
		notStored = "not_stored"
	)
	for _, kind := range []messageKind{answerKind, reportKind, presenceKind} {
		m.overAllowance[kind] = dropped.WithLabelValues(string(kind), "over_allowance")
	}
	for _, d := range []struct {
		counter      *prometheus.Counter
		kind, reason string
	}{
		{&m.dropped.answersMalformed, "answer", malformed},
		{&m.dropped.answersTooLarge, "answer", tooLarge},
		{&m.dropped.answersRetained, "answer", retained},
		{&m.dropped.answersQueueFull, "answer", queueFull},
		{&m.dropped.answersNotStored, "answer", notStored},
		{&m.dropped.reportsMalformed, "report", malformed},
		{&m.dropped.reportsTooLarge, "report", tooLarge},
		{&m.dropped.reportsRetained, "report", retained},
		{&m.dropped.reportsQueueFull, "report", queueFull},
		{&m.dropped.presenceMalformed, "presence", malformed},
		{&m.dropped.presenceTooLarge, "presence", tooLarge},
		{&m.dropped.presenceQueueFull, "presence", queueFull},
		{&m.dropped.resultsQueueFull, "recalled_answer", queueFull},
		{&m.dropped.observationsQueueFull, "observation", queueFull},
		{&m.dropped.observationsNotStored, "observation", notStored},
		{&m.dropped.unknownUnitsQueueFull, "unknown_unit", queueFull},
		{&m.dropped.eventsQueueFull, "event", queueFull},
		{&m.dropped.eventsNotStored, "event", notStored},
	} {
		*d.counter = dropped.WithLabelValues(d.kind, d.reason)
	}
}

// settled counts a command that this instance has settled for its caller.
func (m *metrics) settled(c *telematics.Command, took time.Duration) {
	m.commands.WithLabelValues(string(c.Action), string(c.State.Outcome())).Inc()
	m.commandDuration.Observe(max(took, 0).Seconds()) // negative where the clock was set back
}

// refused counts a request for a command that was refused.
func (m *metrics) refused(code telematics.Code) { m.refusals.WithLabelValues(string(code)).Inc() }

// dropFields counts the parts of a report that were not taken.
func (m *metrics) dropFields(dropped []telematics.Dropped) {
	for _, d := range dropped {
		m.fieldsDropped.WithLabelValues(cmp.Or(faultReasons[d.Fault], faultReasons[""])).Inc()
	}
}
