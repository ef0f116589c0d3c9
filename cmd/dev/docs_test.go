package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/simulator/devstack"
)

// callOfPage stands in for the page: it makes the script sign a request, and prints the header.
const callOfPage = `
globalThis.crypto ??= require("node:crypto").webcrypto; // Node 18 has it only by import
globalThis.window = globalThis;
globalThis.location = {href: "http://127.0.0.1:8080/docs"};
SCRIPT
(async () => {
  const admin = await window.docsRequestInterceptor({url: "http://127.0.0.1:8080/api/v1/admin/vehicles", method: "GET", headers: {}});
  const client = await window.docsRequestInterceptor({
    url: "http://127.0.0.1:8080/api/v1/client/bookings?limit=2&cursor=a%20b", method: "post",
    body: '{"end_date":"ü"}', headers: {Authorization: "Bearer a.b.c"},
  });
  console.log(String(admin.headers["X-Agency-Signature"]) + "\n" + client.headers["X-Agency-Signature"]);
})();`

func TestDocs_SignOnlyRequestsOfClients(t *testing.T) {
	_, err := exec.LookPath("node")
	devstack.Need(t, err)
	key := rental.AgencyKey{ID: "ak_test", Secret: []byte("0123456789abcdef0123456789abcdef")}
	out, err := exec.Command("node", "-e", strings.Replace(callOfPage, "SCRIPT", docsScript(key), 1)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	admin, client, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	assert.Equal(t, admin, "undefined", "a request of an administrator has the signature")
	signature, err := rental.ParseSignature(client)
	require.NoError(t, err, "%q", client)
	signed := rental.SignedRequest{
		Method: "POST", Path: "/api/v1/client/bookings", Query: "limit=2&cursor=a%20b",
		Body: []byte(`{"end_date":"ü"}`), Token: "a.b.c",
	}
	if signature.Key != key.ID || !signature.Fresh(time.Now()) || !signature.Verify(key.Secret, signed) {
		t.Errorf("the signature does not match the request: %s", client)
	}
}
