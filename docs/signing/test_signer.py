"""Run with: python3 -m unittest, in this folder."""

import json
import pathlib
import unittest

from signer import sign

VECTORS = json.loads((pathlib.Path(__file__).parent / "vectors.json").read_text())


class SignerTest(unittest.TestCase):
    def test_published_vectors(self):
        for request in VECTORS["requests"]:
            with self.subTest(url=request["url"]):
                header = sign("ak_1", VECTORS["secret"], request["method"], request["url"], VECTORS["token"],
                              request["body"].encode(), VECTORS["time"], VECTORS["nonce"])
                self.assertEqual(header, f"k=ak_1,t={VECTORS['time']},n={VECTORS['nonce']},v1={request['v1']}")

    def test_every_attempt_has_another_nonce(self):
        request = ("ak_1", VECTORS["secret"], "GET", "https://fleet.example/api/v1/client/bookings", "token")
        self.assertNotEqual(sign(*request), sign(*request))


if __name__ == "__main__":
    unittest.main()
