package httpapi_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/httpapi"
	"motorpool/rental"
	"motorpool/telematics"
)

// asClient sends a request, unless changed, as client-1 of agency 1, through its agency's app.
func (a *api) asClient(method, target string, change ...func(*http.Request)) *response {
	a.t.Helper()
	return a.do(method, target, append(changes{byClient}, change...)...)
}

// appKey returns the key that the app of an agency signs with.
func appKey(agency telematics.AgencyID) rental.AgencyKey {
	return rental.AgencyKey{
		ID: fmt.Sprintf("ak_%d", agency), Agency: agency, AgencyCode: fmt.Sprintf("AG%d", agency),
		Secret: bytes.Repeat([]byte{byte(agency)}, rental.SecretSize), State: rental.KeyActive,
	}
}

// agencyKeys has keys in memory.
type agencyKeys struct {
	byID  map[string]rental.AgencyKey
	err   error
	block bool // calls wait until their context ends

	mu    sync.Mutex
	asked []string
}

func newAgencyKeys() *agencyKeys {
	return &agencyKeys{byID: map[string]rental.AgencyKey{"ak_1": appKey(1), "ak_2": appKey(2)}}
}

func (k *agencyKeys) AgencyKey(ctx context.Context, id string) (rental.AgencyKey, bool, error) {
	k.mu.Lock()
	k.asked = append(k.asked, id)
	k.mu.Unlock()
	if k.block {
		<-ctx.Done()
		return rental.AgencyKey{}, false, ctx.Err()
	}
	key, ok := k.byID[id]
	return key, ok, k.err
}

// List implements AgencyKeyRegistry.
func (k *agencyKeys) List(context.Context) ([]rental.AgencyKey, error) {
	return slices.SortedFunc(maps.Values(k.byID), func(a, b rental.AgencyKey) int { return cmp.Compare(a.ID, b.ID) }), k.err
}

// Add implements AgencyKeyRegistry. The agencies are 1 and 2.
func (k *agencyKeys) Add(_ context.Context, agency telematics.AgencyID, by telematics.Author) (rental.AgencyKey, bool, error) {
	k.asked = append(k.asked, "add by "+by.Subject)
	key := appKey(agency)
	key.ID = "ak_new"
	return key, agency <= 2, k.err
}

// Retire implements AgencyKeyRegistry.
func (k *agencyKeys) Retire(
	_ context.Context, agency telematics.AgencyID, id string, until time.Time, _ telematics.Author,
) (rental.AgencyKey, bool, error) {
	key, ok := k.byID[id]
	key.State, key.Retires = rental.KeyRetiring, until
	return key, ok && key.Agency == agency, k.err
}

// Revoke implements AgencyKeyRegistry.
func (k *agencyKeys) Revoke(_ context.Context, agency telematics.AgencyID, id string, _ telematics.Author) (rental.AgencyKey, bool, error) {
	key, ok := k.byID[id]
	key.State = rental.KeyRevoked
	return key, ok && key.Agency == agency, k.err
}

// signatures records uses without expiry.
type signatures struct {
	mu     sync.Mutex
	used   map[string]bool
	uses   []rental.SignatureUse
	err    error
	result rental.UseResult // zero: decided by the recorded uses
}

func (n *signatures) Use(ctx context.Context, u rental.SignatureUse) (rental.UseResult, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := errors.Join(n.err, ctx.Err()); err != nil {
		return 0, err
	}
	n.uses = append(n.uses, u)
	name := u.Key + " " + u.Nonce
	switch {
	case n.result != 0:
		return n.result, nil
	case n.used[name]:
		return rental.UsedBefore, nil
	}
	n.used[name] = true
	return rental.FirstUse, nil
}

func (n *signatures) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.used)
}

// signature is what an app signs with. A test may change it.
type signature struct {
	key    rental.AgencyKey
	at     time.Time
	nonce  string
	signed rental.SignedRequest
}

func freshNonce() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // crypto/rand.Read never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// sign signs the request in its present state, with the key of the agency in its token, or else of
// agency 1.
func sign(r *http.Request, change ...func(*signature)) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body) // the body is a string
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	path, query := rental.SplitTarget(r.RequestURI)
	s := signature{
		key: appKey(agencyIn(token)), at: now, nonce: freshNonce(),
		signed: rental.SignedRequest{Method: r.Method, Path: path, Query: query, Body: body, Token: token},
	}
	for _, c := range change {
		c(&s)
	}
	r.Header.Set(rental.SignatureHeader, s.signed.Sign(s.key.ID, s.key.Secret, s.at, s.nonce).String())
}

// agencyIn returns the agency of a token.
func agencyIn(token string) telematics.AgencyID {
	var claims struct {
		Agency telematics.AgencyID `json:"agency_id"`
	}
	if parts := strings.Split(token, "."); len(parts) == 3 {
		text, _ := base64.RawURLEncoding.DecodeString(parts[1])
		_ = json.Unmarshal(text, &claims) // an invalid token has no agency
	}
	return max(claims.Agency, 1)
}

// signedBy signs the request in its present state, with a changed signature. Later changes of the
// request break the signature.
func signedBy(change ...func(*signature)) func(*http.Request) {
	return func(r *http.Request) { sign(r, change...) }
}

// signed signs the request in its present state. Later changes of the request break the signature.
func signed(r *http.Request) { sign(r) }

// withoutSignature sends no signature.
func withoutSignature(r *http.Request) { r.Header[rental.SignatureHeader] = nil }

// signIfClients signs requests to routes of clients, unless the test has set the signature header.
func signIfClients(r *http.Request) {
	if _, done := r.Header[rental.SignatureHeader]; !done && strings.HasPrefix(r.URL.Path, "/api/v1/client/") {
		sign(r)
	}
}

// probedAPI has routes of clients that only pass the gate.
func probedAPI(t *testing.T, change ...func(*httpapi.Config)) *api {
	t.Helper()
	return newAPIBy(t, httpapi.NewProbed, change...)
}
