package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"motorpool/httpapi"
	"motorpool/telematics"
)

func TestAServerOutlastsItsLongestCommand(t *testing.T) {
	s := httpapi.NewServer("127.0.0.1:0", http.NotFoundHandler())
	if s.WriteTimeout <= s.ReadTimeout+telematics.MaxBudget || s.ReadHeaderTimeout <= 0 || s.IdleTimeout <= 0 || s.MaxHeaderBytes <= 0 {
		t.Errorf("%+v", s)
	}
}

func TestManyCallersAtOnceGetTheirOwnAnswers(t *testing.T) {
	a := newAPI(t)
	tokens := []string{adminToken(t), agencyToken(t, 1), clientToken(t)}
	wants := []int{200, 200, 403}
	var callers sync.WaitGroup
	for i := range 60 {
		callers.Go(func() {
			id := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
			request := httptest.NewRequest(http.MethodPost, lock, nil)
			if i%2 == 0 {
				request = httptest.NewRequest(http.MethodGet, status42, nil)
			}
			request.Header.Set("Authorization", "Bearer "+tokens[i%3])
			request.Header.Set("X-Request-ID", id)
			recorded := httptest.NewRecorder()
			a.handler.ServeHTTP(recorded, request)
			if recorded.Code != wants[i%3] || recorded.Header().Get("X-Request-ID") != id {
				t.Errorf("caller %d: %d, request id %s", i, recorded.Code, recorded.Header().Get("X-Request-ID"))
			}
		})
	}
	callers.Wait()
}
