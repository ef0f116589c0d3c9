package activity

import "testing"

func TestCell_NoSpreadsheetComputesIt(t *testing.T) {
	for text, want := range map[string]string{
		"admin-7": "admin-7", `{"a":-1}`: `{"a":-1}`, "a=b;c": "a=b;c", "": "",
		"=1+1": "'=1+1", "+49 89": "'+49 89", "-5": "'-5", "@SUM(A1)": "'@SUM(A1)", " =1": "' =1", "\t=1": "' =1", "\r\n=1": "'  =1", "＝1": "'＝1",
		"a;=1+1": "a;'=1+1", `a;"=1`: `a;'"=1`, "a; @x;-1": "a;' @x;'-1", ";\u202e=1": ";'=1", "x\x1b[2J": "x [2J",
	} {
		if got := cell(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
