package errorcode

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/telematics"
)

func TestPage_HasEachCodeAndNoOther(t *testing.T) {
	page := httptest.NewRecorder()
	ServePage(page, httptest.NewRequest(http.MethodGet, Path, nil))
	anchors := map[string]bool{}
	for _, match := range regexp.MustCompile(`<h2 id="(\w+)">`).FindAllStringSubmatch(page.Body.String(), -1) {
		anchors[Path+"#"+match[1]] = true
	}
	for code, kind := range kinds {
		if !anchors[URL(code)] || page.Code != http.StatusOK {
			t.Errorf("the doc_url of %s leads to no paragraph", code)
		}
		if http.StatusText(kind.status) == "" || kind.cause == "" || kind.remedy == "" {
			t.Errorf("%s: %+v", code, kind)
		}
	}
	if len(anchors) != len(kinds) {
		t.Errorf("the page has %d codes, want %d", len(anchors), len(kinds))
	}
	document, err := openapi3.NewLoader().LoadFromFile("../openapi.yaml")
	require.NoError(t, err)
	var listed []string
	for _, code := range document.Components.Schemas["Error"].Value.Properties["code"].Value.Enum {
		listed = append(listed, fmt.Sprint(code))
	}
	for code := range kinds {
		if !slices.Contains(listed, string(code)) {
			t.Errorf("openapi.yaml lacks the code %s", code)
		}
	}
	for _, code := range listed {
		if _, ok := kinds[telematics.Code(code)]; !ok {
			t.Errorf("openapi.yaml has the code %s, which nothing answers", code)
		}
	}
}

// forStaff matches what a driver cannot act on: names of servers, of settings and of parts of the
// installation.
var forStaff = regexp.MustCompile(
	`(?i)\bunits?\b|fleet file|best_effort|\bsett?(ing)?` +
		`\b|operator|redis|postgres|mqtt|protocol|expiry|signature|readyz|--\w|\b[a-z]+_[a-z_]+\b|\.md\b`,
)

func TestDriverMessages_HaveNoInstructionForStaff(t *testing.T) {
	open, earlier := &telematics.Command{
		Action: telematics.Unlock, State: telematics.Sent,
	}, &telematics.Command{
		Action: telematics.Unlock, State: telematics.Unknown, BestEffort: telematics.BestEffort{AnswerBy: time.Now()},
	}
	ended := func(s telematics.State, reason, detail string) *telematics.Error {
		return (&telematics.Command{Action: telematics.Unlock, State: s, Reason: reason, Detail: detail}).Err()
	}
	tried := map[telematics.Code]bool{}
	for _, err := range []*telematics.Error{
		telematics.NoSuchVehicle(42), telematics.NoUnit(), telematics.NotSupported(telematics.Unlock),
		telematics.BestEffortDenied(telematics.Unlock),
		telematics.Conflict(telematics.Unlock, "moving"), telematics.InProgress(open, time.Now()),
		telematics.InProgress(earlier, time.Now()),
		telematics.UnitOffline(telematics.Contact{LastSeen: time.Now().Add(-time.Hour)}, time.Now()),
		telematics.Unavailable("Redis", nil), telematics.UnknownProtocol("v9"),
		telematics.Halted(telematics.Halt{Why: "recall of the unit"}), telematics.Broken(nil),
		ended(telematics.Rejected, "clock_unset", ""), ended(telematics.Rejected, telematics.Unsupported, ""),
		ended(telematics.Rejected, telematics.StateConflict, "moving"),
		ended(telematics.Unknown, "bad_signature", ""), ended(telematics.Unknown, "", telematics.AcceptedByUnit),
		ended(telematics.Unknown, "", ""),
		ended(telematics.Failed, "", "locked_only"), ended(telematics.Expired, "", ""),
		ended(telematics.Expired, telematics.ByHalt, "recall of the unit"),
		rental.NoSuchBooking(1), rental.NoSuchMethod(1), rental.Unavailable(nil), rental.NoMethod(), rental.NotTheirMethod(1),
		rental.InvalidMethod("it is not a card", nil), rental.TooManyMethods(), rental.IsDefault(), rental.InUse(),
	} {
		tried[err.Code] = true
		if read := ForDriver(err); forStaff.MatchString(read.Message) {
			t.Errorf("%s: a driver reads %q", err.Code, read.Message)
		} else if read.Code != err.Code || read.Outcome != err.Outcome || read.Retryable != err.Retryable ||
			read.RetryAfter != err.RetryAfter {
			t.Errorf("%s: for a driver it is %+v", err.Code, read)
		}
	}
	for _, code := range codesIn(t, "../../telematics/errors.go") {
		// The others are for administrators, and for programmers of apps.
		if _, answered := kinds[code]; answered && !tried[code] && code != telematics.CommandNotFound && code != telematics.BulkNotFound &&
			code != telematics.StationNotFound &&
			code != telematics.AgencyNotFound &&
			code != telematics.IDTaken &&
			code != telematics.IdempotencyInProgress &&
			code != telematics.IdempotencyMismatch {
			t.Errorf("the message of %s for a driver was not looked at", code)
		}
	}
}

// codesIn returns the codes that a file declares.
func codesIn(t *testing.T, name string) []telematics.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var codes []telematics.Code
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if value, ok := spec.Values[0].(*ast.BasicLit); ok && value.Kind == token.STRING {
				if name, ok := spec.Type.(*ast.Ident); ok && name.Name == "Code" {
					codes = append(codes, telematics.Code(strings.Trim(value.Value, `"`)))
				}
			}
		}
		return true
	})
	if len(codes) < 15 {
		t.Fatalf("%s declares %d codes, want at least 15", name, len(codes))
	}
	return codes
}
