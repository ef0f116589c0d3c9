package sandbox_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/simulator/sandbox"
)

func TestAPI_NeedsTheSecretKey(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct {
		change func(*http.Request)
		code   string
	}{
		"no key":          {func(r *http.Request) { r.Header.Del("Authorization") }, ""},
		"another key":     {as("sk_test_other"), ""},
		"publishable key": {as("pk_test_app"), "secret_key_required"},
	} {
		t.Log(name)
		b.do(http.MethodPost, "/v1/customers", nil, c.change).wants(401, "invalid_request_error", c.code)
	}
	basic := func(r *http.Request) { r.SetBasicAuth(b.Key(), "") }
	b.do(http.MethodPost, "/v1/customers", nil, basic).wants(200, "", "")
}

func TestAPI_UnknownParameterOrObjectIsAnError(t *testing.T) {
	b := newBench(t)
	customer := b.customer()
	intent := b.intent(customer)
	for _, c := range []struct {
		path       string
		parameters []string
		status     int
		code       string
	}{
		{"/v1/customers", []string{"colour", "red"}, 400, "parameter_unknown"},
		{"/v1/payment_intents", []string{"currency", "eur", "payment_method_types[]", "card"}, 400, "parameter_missing"},
		{"/v1/payment_intents", []string{
			"amount", "1.5", "currency", "eur", "payment_method_types[]", "card",
		}, 400, "parameter_invalid_integer"},
		{"/v1/payment_intents", []string{
			"amount", "-1", "currency", "eur", "payment_method_types[]", "card",
		}, 400, "parameter_invalid_integer"},
		{"/v1/payment_intents", []string{"amount", "1", "currency", "EUR", "payment_method_types[]", "card"}, 400, "parameter_invalid"},
		{"/v1/payment_intents", []string{
			"amount", "1", "currency", "eur", "payment_method_types[]", "sepa_debit",
		}, 400, "parameter_invalid"},
		{"/v1/payment_intents", []string{"amount", "1", "currency", "eur"}, 400, "parameter_invalid"},
		{"/v1/payment_intents", []string{
			"amount", "100000000", "currency", "eur", "payment_method_types[]", "card",
		}, 400, "amount_too_large"},
		{"/v1/payment_intents", []string{"amount", "49", "currency", "eur", "payment_method_types[]", "card"}, 400, "amount_too_small"},
		{"/v1/payment_intents", []string{"amount", "17499", "currency", "huf", "payment_method_types[]", "card"}, 400, "amount_too_small"},
		{"/v1/payment_intents", []string{
			"amount", "5125", "currency", "bhd", "payment_method_types[]", "card",
		}, 400, "invalid_charge_amount"},
		{"/v1/payment_intents", []string{"amount", "5", "currency", "isk", "payment_method_types[]", "card"}, 400, "invalid_charge_amount"},
		{"/v1/payment_intents", []string{
			"amount", "100", "currency", "eur", "payment_method_types[]", "card", "customer", "cus_none",
		}, 400, "resource_missing"},
		{"/v1/payment_intents", []string{
			"amount", "100", "currency", "eur", "payment_method_types[]", "card", "capture_method", "later",
		}, 400, "parameter_invalid"},
		{"/v1/payment_intents/" + intent + "/confirm", []string{"off_session", "yes"}, 400, "parameter_invalid_boolean"},
		{"/v1/payment_intents/pi_none/confirm", nil, 404, "resource_missing"},
		{"/v1/payment_intents/pi_none/capture", nil, 404, "resource_missing"},
		{"/v1/payment_intents/pi_none/cancel", nil, 404, "resource_missing"},
		{"/v1/payment_methods/pm_none/attach", []string{"customer", customer}, 404, "resource_missing"},
		{"/v1/payment_methods/pm_none/detach", nil, 404, "resource_missing"},
		{"/v1/payment_methods/pm_card_visa/attach", []string{"customer", "cus_none"}, 400, "resource_missing"},
		{"/v1/payment_methods/pm_card_visa/attach", nil, 400, "parameter_missing"},
		{"/v1/refunds", []string{"payment_intent", "pi_none"}, 400, "resource_missing"},
		{"/v1/charges", nil, 404, ""},
	} {
		b.do(http.MethodPost, c.path, c.parameters).wants(c.status, "invalid_request_error", c.code)
	}
	for _, path := range []string{"/v1/payment_methods/pm_none", "/v1/payment_intents/pi_none", "/v1/refunds/re_none"} {
		b.get(path).wants(404, "invalid_request_error", "resource_missing")
	}
}

func TestConfirm_OwnerConfirmsWithTheClientSecret(t *testing.T) {
	b := newBench(t)
	customer := b.customer()
	card := b.attach(customer, "pm_card_authenticationRequired")
	path := "/v1/payment_intents/" + b.intent(customer)
	refused := b.post(path+"/confirm", "payment_method", card, "off_session", "true").wants(402, "card_error", "authentication_required")
	intent := refused.body["error"].(map[string]any)["payment_intent"].(map[string]any)
	if intent["status"] != "requires_payment_method" || intent["latest_charge"] == nil || intent["last_payment_error"] == nil {
		t.Errorf("intent %v, want it declined for lack of the owner's confirmation", intent)
	}
	if r := b.post(path+"/confirm", "payment_method", card).wants(200, "", ""); r.text("status") != "requires_action" ||
		r.body["next_action"] == nil {
		t.Errorf("confirmed as %v, want requires_action", r.body)
	}
	secret := intent["client_secret"].(string)
	app := as("pk_test_app")
	for _, wrong := range [][]string{nil, {"client_secret", "pi_1_secret_2"}} {
		b.do(http.MethodGet, path, wrong, app).wants(400, "invalid_request_error", "payment_intent_invalid_parameter")
		b.do(http.MethodPost, path+"/confirm", wrong, app).wants(400, "invalid_request_error", "payment_intent_invalid_parameter")
	}
	b.do(http.MethodGet, path, []string{"client_secret", secret}, app).wants(200, "", "")
	b.do(http.MethodPost, path+"/cancel", []string{"client_secret", secret}, app).wants(401, "invalid_request_error", "secret_key_required")
	if r := b.do(http.MethodPost, path+"/confirm", []string{"client_secret", secret}, app).wants(200, "",
		""); r.text("status") != "succeeded" {
		t.Errorf("confirmed by the owner as %v, want succeeded", r.body)
	}
}

func TestKey_SameKeyIsTheSameRequest(t *testing.T) {
	b := newBench(t)
	first := b.do(http.MethodPost, "/v1/customers", []string{"description", "a"}, withKey("k"))
	again := b.do(http.MethodPost, "/v1/customers", []string{"description", "a"}, withKey("k"))
	if again.text("id") != first.text("id") || again.header.Get("Idempotent-Replayed") != "true" ||
		first.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("first %v, repeated %v; want the same, marked as replayed", first.body, again.body)
	}
	b.do(http.MethodPost, "/v1/customers", []string{"description", "b"}, withKey("k")).wants(400, "idempotency_error", "")
	b.do(http.MethodPost, "/v1/payment_intents", []string{"description", "a"}, withKey("k")).wants(400, "idempotency_error", "")

	// A request that is refused before it starts stores no key; one that fails later does.
	b.do(http.MethodPost, "/v1/customers", []string{"colour", "red"}, withKey("bad")).wants(400, "invalid_request_error",
		"parameter_unknown")
	b.do(http.MethodPost, "/v1/customers", nil, withKey("bad")).wants(200, "", "")
	require.NoError(t, b.Break(sandbox.Fault{Kind: sandbox.FailBefore, Path: "/v1/customers"}))
	for range 2 {
		b.do(http.MethodPost, "/v1/customers", nil, withKey("broken")).wants(500, "api_error", "")
	}
	b.do(http.MethodPost, "/v1/customers", nil, withKey("other")).wants(200, "", "")
}

func TestBreak_AffectsMatchingRequests(t *testing.T) {
	b := newBench(t)
	for _, bad := range []sandbox.Fault{
		{}, {Kind: "odd"}, {Kind: sandbox.TooMany, Path: "["}, {Kind: sandbox.TooMany, Percent: 101}, {Kind: sandbox.Slow},
		{Kind: sandbox.Late},
	} {
		if b.Break(bad) == nil {
			t.Errorf("the invalid fault %+v was accepted", bad)
		}
	}
	breaks := func(f sandbox.Fault) {
		t.Helper()
		require.NoError(t, b.Break(f))
	}
	breaks(sandbox.Fault{Kind: sandbox.TooMany, Method: http.MethodPost, Path: "/v1/payment_intents/*/cancel", Times: 2})
	intent := "/v1/payment_intents/" + b.intent(b.customer())
	b.get(intent).wants(200, "", "")
	for range 2 {
		b.post(intent+"/cancel").wants(429, "invalid_request_error", "rate_limit")
	}
	b.post(intent+"/cancel").wants(200, "", "")
	if fired := b.Fired(); len(fired) != 1 || fired[sandbox.TooMany] != 2 {
		t.Errorf("the fired faults are %v, want two of too many requests", fired)
	}

	for kind, happens := range map[sandbox.FaultKind]bool{
		sandbox.ResetBefore: false, sandbox.ResetAfter: true, sandbox.HangBefore: false, sandbox.HangAfter: true,
	} {
		breaks(sandbox.Fault{Kind: kind, For: 10 * time.Millisecond})
		before := b.Ledger()
		if r, err := b.try(http.MethodPost, "/v1/payment_intents",
			[]string{"amount", "1000", "currency", "eur", "payment_method_types[]", "card"}, withKey(string(kind))); err == nil {
			t.Errorf("the fault %s gave a response: %v", kind, r.body)
		}
		assert.Equal(t, len(b.Ledger()) > len(before), happens, "the fault %s executed the request", kind)
	}
	breaks(sandbox.Fault{Kind: sandbox.TooMany, Times: -1})
	for range 5 {
		b.post("/v1/customers").wants(429, "invalid_request_error", "rate_limit")
	}
	b.Heal()
	b.post("/v1/customers").wants(200, "", "")
	breaks(sandbox.Fault{Kind: sandbox.TooMany, Times: -1, Percent: 50})
	var statuses []int
	for range 60 {
		statuses = append(statuses, b.post("/v1/customers").status)
	}
	if !slices.Contains(statuses, 200) || !slices.Contains(statuses, 429) {
		t.Errorf("with a fault of 50 %%: statuses %v, want 200 and 429", statuses)
	}
}
