package pg

import (
	"context"
	"testing"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"motorpool/internal/assert"
)

func TestSplits_ForErrorsThatOneRowMayCause(t *testing.T) {
	for code, want := range map[string]bool{"22P05": true, "23503": true, "40P01": true, "55P03": true, "57014": false, "42P01": false} {
		assert.Equal(t, Splits(&pq.Error{Code: pqerror.Code(code)}), want, "%s: Splits", code)
	}
	if Splits(context.DeadlineExceeded) {
		t.Error("a missing response does not split a batch")
	}
}
