import { describe, expect, test } from "vitest";
import { createPublicLookup, isPublicAddress, type Resolve } from "../../src/media/public-address.ts";

const refusal = new Error("refused");

function lookUp(resolve: Resolve, all: boolean): Promise<unknown[]> {
  return new Promise((done) => {
    createPublicLookup(() => refusal, resolve)("example.com", { all }, (...answer) => done(answer));
  });
}

describe("isPublicAddress", () => {
  test.each(["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450:4001::200e"])(
    "the address %s is public",
    (address) => expect(isPublicAddress(address)).toBe(true),
  );

  test.each([
    ..."0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 127.255.255.254 169.254.169.254 172.16.0.1".split(" "),
    ..."192.0.0.170 192.168.1.1 198.18.0.1 203.0.113.5 224.0.0.1 255.255.255.255 0177.0.0.1".split(" "),
    ...":: ::1 ::ffff:127.0.0.1 ::ffff:a9fe:a9fe ::127.0.0.1 64:ff9b::a9fe:a9fe 2001:db8::1".split(" "),
    ..."2002:a9fe:a9fe:: fd00:ec2::254 fe80::1 fec0::1 ff02::1".split(" "),
    "example.com",
    "",
  ])("the address %j is not public", (address) => expect(isPublicAddress(address)).toBe(false));
});

describe("createPublicLookup", () => {
  const open = { address: "93.184.216.34", family: 4 };
  const hidden = { address: "169.254.169.254", family: 4 };

  test("the lookup returns all addresses, or the first if only one is requested", async () => {
    const resolve: Resolve = (_, answer) => answer(null, [open, { address: "2606:4700::1111", family: 6 }]);
    expect(await lookUp(resolve, true)).toEqual([null, [open, { address: "2606:4700::1111", family: 6 }]]);
    expect(await lookUp(resolve, false)).toEqual([null, open.address, 4]);
  });

  test("the lookup refuses a name with any private address, and a name without addresses", async () => {
    expect(await lookUp((_, answer) => answer(null, [open, hidden]), true)).toEqual([refusal, []]);
    expect(await lookUp((_, answer) => answer(null, [hidden]), false)).toEqual([refusal, []]);
    expect(await lookUp((_, answer) => answer(null, []), true)).toEqual([refusal, []]);
  });

  test("the lookup passes on the error for an unknown name", async () => {
    const unknown = new Error("ENOTFOUND");
    expect(await lookUp((_, answer) => answer(unknown, []), true)).toEqual([unknown, []]);
  });
});
