import { z } from "zod";

export const quotas = z.unknown();
