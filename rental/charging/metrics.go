package charging

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"motorpool/rental"
)

// metrics are the metrics of a collector, explained in docs/metrics.md. All series exist from the
// start, with the value zero.
type metrics struct {
	charges *prometheus.CounterVec // by kind and state

	attempts      prometheus.Counter
	recovered     prometheus.Counter
	withoutResult struct{ claimedElsewhere, notStored, noChange prometheus.Counter }
	// Failed calls of the processor.
	failures struct{ outcomeUnknown, busy, refused prometheus.Counter }

	notices prometheus.Counter
	handled struct{ chargeChecked, chargeFinal, cardChecked, disputed, unknownObject, failed prometheus.Counter }
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	create := promauto.With(registerer)
	vector := func(name, help string, labels ...string) *prometheus.CounterVec {
		return create.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		charges: vector("motorpool_charges_total", "Results of charges that this instance has recorded.", "kind", "state"),
		attempts: create.NewCounter(
			prometheus.CounterOpts{Name: "motorpool_charge_attempts_total", Help: "Due charges that this instance has claimed."},
		),
		recovered: create.NewCounter(prometheus.CounterOpts{
			Name: "motorpool_payments_recovered_total",
			Help: "Payments and refunds that were not on record, and were found at the payment processor before they were made again.",
		}),
		notices: create.NewCounter(prometheus.CounterOpts{
			Name: "motorpool_payment_notices_total",
			Help: "Notices of the payment processor that this instance has claimed.",
		}),
	}
	for _, kind := range rental.ChargeKinds {
		for _, state := range kind.Results() {
			m.charges.WithLabelValues(string(kind), string(state))
		}
	}
	withoutResult := vector(
		"motorpool_charge_attempts_without_result_total",
		"Claimed charges of which nothing new was recorded. claimed_elsewhere: another instance has them, or they have changed; "+
			"not_stored: Postgres was unavailable; no_change: the next attempt follows.",
		"reason",
	)
	m.withoutResult.claimedElsewhere = withoutResult.WithLabelValues("claimed_elsewhere")
	m.withoutResult.notStored = withoutResult.WithLabelValues("not_stored")
	m.withoutResult.noChange = withoutResult.WithLabelValues("no_change")

	failures := vector(
		"motorpool_payment_processor_failures_total",
		"Calls of the payment processor that failed. outcome_unknown: the call may have been executed; busy: "+
			"the processor did not accept it; refused: wrong credentials, or a request that is not valid, unless it was for a refund.",
		"reason",
	)
	m.failures.outcomeUnknown = failures.WithLabelValues("outcome_unknown")
	m.failures.busy = failures.WithLabelValues("busy")
	m.failures.refused = failures.WithLabelValues("refused")

	handled := vector(
		"motorpool_payment_notices_handled_total",
		"What notices of the payment processor led to. charge_final: nothing changes the charge any more; disputed: the audit "+
			"log of its booking has it; unknown_object: nothing on record; failed: the notice comes again.",
		"result",
	)
	m.handled.chargeChecked = handled.WithLabelValues("charge_checked")
	m.handled.chargeFinal = handled.WithLabelValues("charge_final")
	m.handled.cardChecked = handled.WithLabelValues("card_checked")
	m.handled.disputed = handled.WithLabelValues("disputed")
	m.handled.unknownObject = handled.WithLabelValues("unknown_object")
	m.handled.failed = handled.WithLabelValues("failed")
	return m
}

// settled counts a recorded result of a charge.
func (m *metrics) settled(k rental.ChargeKind, s rental.ChargeState) {
	m.charges.WithLabelValues(string(k), string(s)).Inc()
}
