package enrolment

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4/middleware"
)

const (
	maxRequest    = 16 << 10 // bytes; a request with an RSA key of 4096 bits has 2 KiB
	maxConcurrent = 4        // each reads and writes the folder's files

	// Requests a second from one address, and the burst. A mobile network shows many units under
	// one address. Double: more guesses of a code, which has far too many values for either.
	addressRate, addressBurst = 5, 50
)

// Handler answers units, each with a certificate request as PEM:
//
//	POST /v1/enrol  a code as bearer token gets the first certificate
//	POST /v1/renew  a certificate, as that of the TLS client, gets the next one
//
// Serve it with TLS that requests client certificates. TLS need not verify them: Renew does.
func Handler(a *Authority, log *slog.Logger) http.Handler {
	s := server{log: log, places: make(chan struct{}, maxConcurrent), addresses: middleware.NewRateLimiterMemoryStoreWithConfig(
		middleware.RateLimiterMemoryStoreConfig{Rate: addressRate, Burst: addressBurst},
	)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/enrol", func(w http.ResponseWriter, r *http.Request) {
		text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			http.Error(w, "want Authorization: Bearer, and the code", http.StatusUnauthorized)
			return
		}
		s.answer(w, r, func(request []byte) ([]byte, Certificate, error) { return a.Issue(r.Context(), text, request) })
	})
	mux.HandleFunc("POST /v1/renew", func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
			http.Error(w, "want the certificate that is renewed, as that of the TLS client", http.StatusUnauthorized)
			return
		}
		s.answer(w, r, func(request []byte) ([]byte, Certificate, error) {
			return a.Renew(r.Context(), r.TLS.PeerCertificates[0], request)
		})
	})
	return mux
}

type server struct {
	log    *slog.Logger
	places chan struct{} // one element for each request in progress
	// Requests of each address.
	addresses middleware.RateLimiterStore
}

// statuses maps errors that the caller caused to HTTP statuses.
var statuses = map[error]int{
	ErrCode: http.StatusUnauthorized, ErrCertificate: http.StatusUnauthorized, ErrRequest: http.StatusBadRequest, ErrEarly: http.StatusConflict,
}

// answer sends the certificate that issue returns, or an error.
func (s server) answer(w http.ResponseWriter, r *http.Request, issue func(request []byte) ([]byte, Certificate, error)) {
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	if ok, err := s.addresses.Allow(address); !ok || err != nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests from your address: repeat it", http.StatusTooManyRequests)
		return
	}
	request, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		http.Error(w, "want a certificate request of at most 16 KiB", http.StatusRequestEntityTooLarge)
		return
	}
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests at the moment: repeat it", http.StatusServiceUnavailable)
		return
	}
	chain, issued, err := issue(request)
	for refusal, status := range statuses {
		if errors.Is(err, refusal) {
			s.log.Warn("certificate refused", "path", r.URL.Path, "from", r.RemoteAddr, "err", err)
			http.Error(w, err.Error(), status)
			return
		}
	}
	switch {
	case err != nil:
		s.log.Error("certificate not issued", "path", r.URL.Path, "from", r.RemoteAddr, "err", err)
		http.Error(w, "not issued: repeat the request", http.StatusServiceUnavailable)
		return
	case issued.Serial == "":
		s.log.Info("certificate handed out again", "path", r.URL.Path, "unit", issued.Unit, "from", r.RemoteAddr)
	default:
		s.log.Info("certificate issued", "path", r.URL.Path, "unit", issued.Unit, "serial", issued.Serial, "expires", issued.Expires, "from", r.RemoteAddr)
	}
	w.Header().Set("Content-Type", "application/pem-certificate-chain")
	_, _ = w.Write(chain)
}
