import { z } from "zod";

export const models = z.unknown();
