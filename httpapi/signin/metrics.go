package signin

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"motorpool/httpapi/auth"
	"motorpool/telematics"
)

// attempts counts sign-ins with a password by result. docs/operating.md explains them.
type attempts struct{ vec *prometheus.CounterVec }

func newAttempts(registerer prometheus.Registerer) attempts {
	a := attempts{promauto.With(registerer).NewCounterVec(prometheus.CounterOpts{
		Name: "motorpool_password_sign_ins_total", Help: "Sign-ins with a password or a link, by result.",
	}, []string{"result"})}
	for _, result := range []string{"signed_in", "refused", "limited", "unavailable"} {
		a.vec.WithLabelValues(result)
	}
	return a
}

func (a attempts) count(err error) {
	result := "signed_in"
	var refusal *telematics.Error
	switch {
	case err == nil:
	case !errors.As(err, &refusal):
		result = "unavailable"
	case refusal.Code == RateLimited:
		result = "limited"
	case refusal.Code == auth.Unauthenticated || refusal.Code == auth.Forbidden:
		result = "refused"
	}
	a.vec.WithLabelValues(result).Inc()
}
