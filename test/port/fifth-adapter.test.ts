import { describe, expect, onTestFinished, test } from "vitest";
import { silent } from "../../lab/support/log.ts";
import { makeDataDir } from "../../lab/support/service.ts";
import { startService } from "../../src/app/service.ts";
import { ConfigError, readConfig, variableNames } from "../../src/config/config.ts";
import { printConfigurationTables, printEnvExample } from "../../src/config/reference.ts";
import { describeConfig, secretsOf, tokenForms } from "../../src/config/summary.ts";
import { createPlatformSections } from "../../src/doctor/platforms.ts";
import { createLogger } from "../../src/log/log.ts";
import { PLATFORMS } from "../../src/platforms.ts";
import { loadModules } from "../../src/port/module.ts";
import { createSetup } from "../../src/setup/setup.ts";
import { createPigeonAdapter, type PigeonMessage } from "../fixtures/pigeon/adapter.ts";
import { type AdapterUnderTest, adapterContract } from "../support/adapter-contract.ts";
import { eventually } from "../support/eventually.ts";

const TOKEN = "coo-loft-5e1f";
const { signal } = new AbortController();
/** The platform's folder, and the line that lists the platform. No other code knows it. */
const modules = await loadModules({ ...PLATFORMS, pigeon: () => import("../fixtures/pigeon/index.ts") });
const configured = (env: Record<string, string> = {}) => readConfig({ PIGEON_TOKEN: TOKEN, ...env }, modules);

/** Sends requests as people on the made-up platform do. */
function openNest(send: (path: string, request: RequestInit) => Response | Promise<Response>, nest: string) {
  const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
  return {
    async write(letter: object) {
      const { status } = await send(`/pigeon/${nest}`, { method: "POST", headers, body: JSON.stringify(letter) });
      if (status !== 202) throw new Error(`The letter was not accepted (${status}).`);
    },
    read: async () => (await (await send(`/pigeon/${nest}`, { headers })).json()) as PigeonMessage[],
  };
}

describe("a platform that is one folder and one line", () => {
  test("a made-up platform is configured by its own variables, whose mistakes are reported with all others", () => {
    const { platforms, platformSecrets } = configured({ PIGEON_LOFT: "the barn" });
    expect(platforms).toMatchObject([{ module: { platform: "pigeon" }, config: { token: TOKEN, loft: "the barn" } }]);
    expect(platformSecrets).toEqual([TOKEN]);
    expect(variableNames(modules)).toEqual(expect.arrayContaining(["PIGEON_TOKEN", "PIGEON_LOFT"]));
    const read = () => readConfig({ PIGEON_TOKEN: "sparrow", PIGEON_LOFTT: "x", PORT: "http" }, modules);
    expect(read).toThrow(ConfigError);
    for (const problem of [/PIGEON_TOKEN must be a pigeon's token/, /PIGEON_LOFT\?/, /PORT must be/]) {
      expect(read).toThrow(problem);
    }
  });

  test("a made-up platform appears in the documents and in the log of the start", () => {
    expect(printEnvExample(modules)).toContain("## Pigeon\n\n# The token of the loft, `coo-…`. Empty: Pigeon is off.");
    expect(printConfigurationTables(modules)).toContain("| `PIGEON_LOFT` | `the roof` | Where the pigeons live. |");
    expect(describeConfig(configured())).toContain("Pigeon: on, from the roof");
    expect(describeConfig(readConfig({}, modules))).toContain("Pigeon: off (set PIGEON_TOKEN to switch it on)");
  });

  test("the doctor checks a made-up platform", async () => {
    const runPigeon = (config: ReturnType<typeof configured>) =>
      createPlatformSections(config)
        .find(({ title }) => title === "Pigeon")
        ?.run(signal);
    expect(await runPigeon(configured())).toEqual([{ ok: true, what: "The pigeons on the roof are awake." }]);
    expect(await runPigeon(readConfig({}, modules))).toEqual([{ ok: true, what: "Off: PIGEON_TOKEN is not set." }]);
  });

  test("the setup offers and checks a made-up platform, and saves its variables", async () => {
    const { path: folder, remove } = await makeDataDir();
    onTestFinished(remove);
    const setup = createSetup({ env: { PIGEON_LOFT: "the barn" }, folder, modules });
    expect(setup.steps({}).map(({ id }) => id)).toContain("pigeon");
    expect(await setup.check("pigeon", {}, signal)).toEqual([{ ok: false, what: 'Off until you fill in "Token".' }]);
    expect(await setup.check("pigeon", { PIGEON_TOKEN: TOKEN }, signal)).toEqual([
      { ok: true, what: "The pigeons on the barn are awake." },
    ]);
    expect(setup.toEnvFile({ PIGEON_TOKEN: TOKEN })).toEqual({ text: `PIGEON_TOKEN=${TOKEN}\n`, problems: [] });
  });

  test("the log redacts a made-up platform's tokens, and also other platforms' tokens in JSON", () => {
    const lines: string[] = [];
    const config = configured();
    const destination = { write: (line: string) => void lines.push(line) };
    const log = createLogger({ level: "info", secrets: secretsOf(config), tokens: tokenForms(modules), destination });
    log.info({ found: `x\ncoo-other-loft` }, `a pigeon with ${TOKEN}`);
    expect(lines.join("")).not.toMatch(/coo-/);
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({ found: "x\n[redacted]", msg: "a pigeon with [redacted]" });
  });

  test("a made-up platform answers a message in a running service", async () => {
    const { path, remove } = await makeDataDir();
    onTestFinished(remove);
    const service = await startService({
      config: configured({ DATA_DIR: path, PORT: "0" }),
      env: {},
      log: silent,
      onFatal() {},
      onEnd() {},
    });
    onTestFinished(() => service.close(0));
    await service.run();
    expect(service.hasPage).toBe(false);
    const nest = openNest((way, request) => fetch(service.url + way, request), "n1");
    await nest.write({ text: "hello" });
    await eventually(async () => (await nest.read()).map(({ isGrowing }) => isGrowing)).toEqual([false]);
    expect((await nest.read())[0]?.text).not.toBe("");
  });
});

adapterContract(
  "made-up fifth",
  async (accept): Promise<AdapterUnderTest> => {
    const { adapter, app } = createPigeonAdapter({ token: TOKEN, now: Date.now });
    await adapter.listen(accept);
    app.onError((_, c) => c.body(null, 500));
    let count = 0;
    let nest = openNest(app.request, "n0");
    const never = () => Promise.reject(new Error("Pigeons do not do that."));
    return {
      adapter,
      mention: "@Ada",
      begin(text) {
        nest = openNest(app.request, `n${++count}`);
        return nest.write({ text });
      },
      goOn: (text) => nest.write({ text }),
      redeliver: never,
      editNewest: never,
      deleteNewest: never,
      async press(_, wanted) {
        const buttons = (await nest.read()).flatMap((message) => message.buttons);
        await nest.write(buttons.find(({ label }) => label === wanted) ?? {});
      },
      seen: async () =>
        (await nest.read()).map(({ text, files, buttons }) => ({
          text,
          fileNames: files,
          buttons: buttons.map(({ label }) => label),
        })),
      close: adapter.close,
    };
  },
  {
    noRedelivery: "a request is sent once",
    noEdits: "a letter that was sent stays as it is",
    noAttachments: "pigeons carry no files",
    noDiscussion: "one person writes to each nest",
  },
);
