import { describe, expect, test } from "vitest";
import { createUseFile, type UseFile } from "../../src/media/use-file.ts";

const never = new AbortController().signal;

async function* once(sizeBytes: number): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(sizeBytes);
}

function use<T>(useFile: UseFile, sizeBytes: number, task: () => Promise<T>, signal = never) {
  const ref = { platform: "test", id: "1", name: "a.bin", sizeBytes };
  const limits = { maxFileBytes: 100, timeoutMs: 60_000, tooLarge: "is too large" };
  return useFile({ ...limits, ref, owner: "ada", open: async () => once(sizeBytes) }, task, signal);
}

describe("a file that waits for memory", () => {
  test("a waiting file is read as soon as another file is done", async () => {
    const useFile = createUseFile({ maxHeldBytes: 100 });
    const done = Promise.withResolvers<string>();
    const begun = Promise.withResolvers<void>();
    const first = use(useFile, 50, () => {
      begun.resolve();
      return done.promise;
    });
    await begun.promise;
    const order: string[] = [];
    const second = use(useFile, 50, async () => order.push("second"));
    done.promise.then(() => order.push("first")).catch(() => {});
    done.resolve("used");
    expect(await first).toBe("used");
    await second;
    expect(order).toEqual(["first", "second"]);
  });

  test("the reader abandons a file that waits too long for memory, with a sentence for its user", async () => {
    const useFile = createUseFile({ maxHeldBytes: 100, waitMs: 20 });
    const done = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const first = use(useFile, 50, () => {
      begun.resolve();
      return done.promise;
    });
    await begun.promise;
    expect(await use(useFile, 50, async () => "used")).toEqual({
      problem: "waited too long behind other files; send it again in a minute",
    });
    done.resolve();
    await first;
    expect(await use(useFile, 50, async () => "used")).toBe("used");
  });

  test("waiting for memory rejects with the signal's reason", async () => {
    const useFile = createUseFile({ maxHeldBytes: 100 });
    const controller = new AbortController();
    const begun = Promise.withResolvers<void>();
    void use(useFile, 50, () => {
      begun.resolve();
      return new Promise<never>(() => {});
    });
    await begun.promise;
    const second = use(useFile, 50, async () => "used", controller.signal);
    controller.abort("stopped");
    await expect(second).rejects.toBe("stopped");
  });
});
