// SHA-256 is that of NIST's examples, and of the platform around the limits of blocks.
import assert from "node:assert/strict";
import { test } from "node:test";

import { hex } from "../src/rounds.js";
import { sha256 } from "../src/sha256.js";
import { systemCrypto } from "../src/words.js";

const hashed = (text) => hex(sha256(new TextEncoder().encode(text)));

test("hashes NIST's examples", () => {
  for (const [text, digest] of [
    ["", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
    ["abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
    [
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
    ],
    [
      "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
      "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1",
    ],
    ["a".repeat(1e6), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"],
  ]) {
    assert.equal(hashed(text), digest);
  }
});

test("hashes as the platform does", async () => {
  const crypto = await systemCrypto();
  const source = crypto.getRandomValues(new Uint8Array(4200));
  for (let n = 0; n <= source.length; n += n < 260 ? 1 : 197) {
    const bytes = source.subarray(n % 7, n);
    const expected = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    assert.equal(hex(sha256(bytes)), hex(expected), hex(bytes));
  }
});
