package sandbox_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/simulator/sandbox"
)

func TestServer_FileKeepsTheLedger(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.json")
	inFile := func(c *sandbox.Config) { c.File, c.RefundDelay = file, time.Hour }
	b := newBench(t, inFile)
	customer := b.customer()
	card, wary := b.attach(customer, "pm_card_pendingRefund"), b.attach(customer, "pm_card_authenticationRequired")
	intent := b.intent(customer)
	confirm := []string{"payment_method", card}
	b.do(http.MethodPost, "/v1/payment_intents/"+intent+"/confirm", confirm, withKey("confirm")).wants(200, "", "")
	refused := b.intent(customer)
	b.post("/v1/payment_intents/"+refused+"/confirm", "payment_method", wary, "off_session", "true").wants(402, "card_error",
		"authentication_required")
	refund := b.post("/v1/refunds", "payment_intent", intent, "amount", "100").wants(200, "", "")
	if refund.text("status") != "pending" {
		t.Errorf("refund %v, want it pending", refund.body)
	}
	was := b.Ledger()
	// The file must be complete before Close: the process may be killed instead.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), refund.text("id")) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the file was not written")
		}
	}
	require.NoError(t, b.Close())
	again := newBench(t, inFile, func(c *sandbox.Config) { c.RefundDelay = time.Millisecond })
	for deadline := time.Now().Add(time.Minute); again.get("/v1/refunds/"+
		refund.text("id")).text("status") != "succeeded"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a pending refund did not complete after the restart")
		}
	}
	was[0].Refunds[0].Status = "succeeded" // all else is as before
	assert.DeepEqual(t, again.Ledger(), was, "the ledger")
	if r := again.do(http.MethodPost, "/v1/payment_intents/"+intent+"/confirm", confirm, withKey("confirm")).wants(200, "",
		""); r.header.Get("Idempotent-Replayed") != "true" {
		t.Error("the repeated key was not replayed after the restart")
	}
	if r := again.get("/v1/payment_intents/"+refused).wants(200, "", ""); r.body["last_payment_error"] == nil {
		t.Errorf("the declined payment is %v, want it with its error", r.body)
	}
	again.post("/v1/payment_intents/"+again.intent(customer)+"/confirm", "payment_method", card).wants(200, "", "")
	require.NoError(t, os.WriteFile(file+".bad", []byte("{"), 0o600))
	if s, err := sandbox.Start(sandbox.Config{File: file + ".bad"}); err == nil {
		_ = s.Close()
		t.Error("an invalid file was loaded")
	}
}

func TestAdmin_SetsFaultsAndListsPayments(t *testing.T) {
	b := newBench(t)
	admin := func(method, path, body string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, b.URL()+path, strings.NewReader(body))
		require.NoError(t, err)
		response, err := b.client.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		var text bytes.Buffer
		_, err = text.ReadFrom(response.Body)
		require.NoError(t, err)
		return response.StatusCode, text.String()
	}
	order := `[{"kind":"too_many","method":"POST","path":"/v1/customers","times":1}]`
	if status, text := admin(http.MethodPost, "/sandbox/faults", order); status != 204 {
		t.Errorf("setting the faults: %d %s", status, text)
	}
	if status, text := admin(http.MethodGet, "/sandbox/faults", ""); status != 200 || !strings.Contains(text, `"percent":100`) {
		t.Errorf("reading the faults: %d %s", status, text)
	}
	b.post("/v1/customers").wants(429, "invalid_request_error", "rate_limit")
	_, _ = admin(http.MethodPost, "/sandbox/faults", order)
	if status, _ := admin(http.MethodDelete, "/sandbox/faults", ""); status != 204 || len(b.Faults()) != 0 {
		t.Errorf("removing the faults: %d, left %+v", status, b.Faults())
	}
	customer := b.customer()
	card := b.attach(customer, "pm_card_visa")
	assert.NoError(t, b.SetCard(card, sandbox.Behaviour{Decline: "stolen_card"}))
	b.post("/v1/payment_intents/"+b.intent(customer)+"/confirm", "payment_method", card).wants(402, "card_error", "card_declined")
	status, text := admin(http.MethodGet, "/sandbox/ledger", "")
	var movements []sandbox.Movement
	if err := json.Unmarshal([]byte(text), &movements); err != nil || status != 200 || !reflect.DeepEqual(movements, b.Ledger()) {
		t.Errorf("reading the ledger: %d, %v, %s", status, err, text)
	}
	for _, bad := range [][2]string{
		{"/sandbox/faults", `[{"kind":"odd"}]`}, {"/sandbox/faults", `{`}, {"/sandbox/faults", `[{"colour":"red"}]`},
	} {
		if status, text := admin(http.MethodPost, bad[0], bad[1]); status != 400 || !strings.Contains(text, "error") {
			t.Errorf("invalid request %v: %d %s, want 400", bad, status, text)
		}
	}
}
