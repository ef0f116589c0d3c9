package enrolment_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"motorpool/internal/enrolment"
)

// Wrong codes from one address do not lock out other units.
func TestHandler_LimitsTheRequestsOfAnAddress(t *testing.T) {
	dir := t.TempDir()
	authority, err := enrolment.Create(t.Context(), dir+"/authority", dir+"/units.crl", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	handler := enrolment.Handler(authority, slog.New(slog.DiscardHandler))
	enrol := func(from string) int {
		r := httptest.NewRequest(http.MethodPost, "/v1/enrol", strings.NewReader("no request"))
		r.RemoteAddr = from
		r.Header.Set("Authorization", "Bearer guess")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	for range 200 {
		if code := enrol("192.0.2.1:1000"); code == http.StatusTooManyRequests {
			if code := enrol("192.0.2.2:1000"); code != http.StatusUnauthorized {
				t.Errorf("another address got %d", code)
			}
			return
		}
	}
	t.Error("200 wrong codes of one address were not limited")
}
