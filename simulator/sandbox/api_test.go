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

func TestIntent_SmallestAmountIsTaken(t *testing.T) {
	b := newBench(t)
	b.post("/v1/payment_intents", "amount", "50", "currency", "eur", "payment_method_types[]", "card").wants(200, "", "")
	b.post("/v1/payment_intents", "amount", "1", "currency", "vnd", "payment_method_types[]", "card").wants(200, "", "")
}

func TestCard_DetachedIsOfNoUse(t *testing.T) {
	b := newBench(t)
	customer := b.customer()
	card := b.attach(customer, "pm_card_visa")
	b.post("/v1/payment_methods/"+card+"/detach").wants(200, "", "")
	b.post("/v1/payment_methods/"+card+"/detach").wants(400, "invalid_request_error", "")
	b.post("/v1/payment_methods/"+card+"/attach", "customer", customer).wants(400, "invalid_request_error", "")
}

func TestPayment_FollowsItsLifecycle(t *testing.T) {
	b := newBench(t)
	customer := b.customer()
	visa := b.attach(customer, "pm_card_visa")
	path := func(id, what string) string { return "/v1/payment_intents/" + id + what }
	const wrong = "payment_intent_unexpected_state"

	direct, held, dropped := b.intent(customer), b.intent(customer, "capture_method", "manual"), b.intent(customer)
	// No card was given.
	b.post(path(direct, "/confirm"), "off_session", "true").wants(400, "invalid_request_error", wrong)
	b.post(path(direct, "/confirm"), "payment_method", visa, "off_session", "true").wants(200, "", "")
	b.post(path(direct, "/confirm"), "payment_method", visa).wants(400, "invalid_request_error", wrong)
	b.post(path(direct, "/cancel")).wants(400, "invalid_request_error", wrong)
	b.post(path(direct, "/capture")).wants(400, "invalid_request_error", wrong)

	b.post(path(held, "/capture")).wants(400, "invalid_request_error", wrong)
	if r := b.post(path(held, "/confirm"), "payment_method", visa).wants(200, "", ""); r.text("status") != "requires_capture" {
		t.Errorf("confirmed as %v, want requires_capture", r.body)
	}
	b.post(path(held, "/capture"), "amount_to_capture", "1001").wants(400, "invalid_request_error", "amount_too_large")
	b.post(path(held, "/capture"), "amount_to_capture", "400").wants(200, "", "")

	b.post(path(dropped, "/cancel"), "cancellation_reason", "abandoned").wants(200, "", "")
	b.post(path(dropped, "/cancel")).wants(400, "invalid_request_error", wrong)
	b.post(path(dropped, "/confirm"), "payment_method", visa).wants(400, "invalid_request_error", wrong)

	b.post("/v1/refunds", "payment_intent", dropped).wants(400, "invalid_request_error", "")
	b.post("/v1/refunds", "payment_intent", held, "amount", "401").wants(400, "invalid_request_error", "")
	b.post("/v1/refunds", "payment_intent", held, "amount", "100", "metadata[charge_id]", "c-2").wants(200, "", "")
	b.post("/v1/refunds", "payment_intent", held).wants(200, "", "")
	b.post("/v1/refunds", "payment_intent", held).wants(400, "invalid_request_error", "charge_already_refunded")

	want := []sandbox.Movement{
		{Status: "succeeded", Captured: 1000, Attempts: 1, Approved: 1},
		{Status: "succeeded", Captured: 400, Refunded: 400, Attempts: 1, Approved: 1},
		{Status: "canceled"},
	}
	for i, m := range b.Ledger() {
		if m.Charge != "c-1" || m.Customer != customer || m.Currency != "EUR" || m.Amount != 1000 || m.Held != 0 ||
			i == 1 && (len(m.Refunds) != 2 || m.Refunds[0].Charge != "c-2") {
			t.Errorf("payment %+v has wrong details", m)
		}
		if m.Status != want[i].Status || m.Captured != want[i].Captured || m.Refunded != want[i].Refunded ||
			m.Attempts != want[i].Attempts ||
			m.Approved != want[i].Approved {
			t.Errorf("payment %+v, want %+v", m, want[i])
		}
	}
	list := b.get("/v1/payment_intents", "customer", customer, "limit", "2").wants(200, "", "")
	data := list.body["data"].([]any)
	if list.body["has_more"] != true || len(data) != 2 || data[0].(map[string]any)["id"] != dropped {
		t.Errorf("first page %v, want two payments and more", list.body)
	}
	rest := b.get("/v1/payment_intents", "customer", customer, "starting_after", held)
	if data := rest.body["data"].([]any); rest.body["has_more"] != false || len(data) != 1 || data[0].(map[string]any)["id"] != direct {
		t.Errorf("second page %v, want the first payment and no more", rest.body)
	}
	latest := b.get("/v1/payment_intents", "expand[]", "data.latest_charge", "created[gte]", "1").wants(200, "",
		"").body["data"].([]any)[1].(map[string]any)["latest_charge"]
	if charge, ok := latest.(map[string]any); !ok || charge["amount_refunded"] != 400.0 {
		t.Errorf("the charge of the refunded payment is %v", latest)
	}
	b.get("/v1/payment_intents", "expand[]", "data.customer").wants(400, "invalid_request_error", "parameter_invalid")
	if none := b.get("/v1/payment_intents", "created[gte]", "9999999999").wants(200, "", ""); len(none.body["data"].([]any)) != 0 {
		t.Errorf("payments of the future: %v, want none", none.body)
	}
	if none := b.get("/v1/payment_intents", "customer", b.customer()); len(none.body["data"].([]any)) != 0 {
		t.Errorf("payments of another customer: %v, want none", none.body)
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

func TestCard_IsDeclinedWhenAttachedOrCharged(t *testing.T) {
	b := newBench(t)
	customer := b.customer()
	attached := b.post("/v1/payment_methods/pm_card_visa_chargeDeclined/attach", "customer", customer).wants(402, "card_error",
		"card_declined")
	if e := attached.body["error"].(map[string]any); e["decline_code"] != "generic_decline" {
		t.Errorf("declined as %v, want generic_decline", e)
	}
	card := b.attach(customer, "pm_card_chargeCustomerFail")
	path := "/v1/payment_intents/" + b.intent(customer) + "/confirm"
	for range 2 {
		b.post(path, "payment_method", card).wants(402, "card_error", "card_declined")
	}
	require.NoError(t, b.SetCard(card, sandbox.Behaviour{}))
	b.post(path, "payment_method", card).wants(200, "", "")
	if m := b.Ledger()[0]; m.Attempts != 3 || m.Approved != 1 {
		t.Errorf("payment %+v, want three attempts, one approved", m)
	}
	other := b.customer()
	b.post("/v1/payment_intents/"+b.intent(other)+"/confirm", "payment_method", card).wants(400, "invalid_request_error",
		"resource_missing")
	b.post("/v1/payment_intents/"+b.intent(other)+"/confirm", "payment_method", "pm_none").wants(400, "invalid_request_error",
		"resource_missing")
	if b.SetCard("pm_none", sandbox.Behaviour{}) == nil {
		t.Error("the change of an unknown card returned no error")
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
